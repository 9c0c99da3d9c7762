package config

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// eachField yields every field of a schema with its path.
func eachField(schema map[string]any, path string, yield func(path string, field map[string]any)) {
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, field := range properties {
			yield(join(path, name), field.(map[string]any))
			eachField(field.(map[string]any), join(path, name), yield)
		}
	}
	if forms, ok := schema["anyOf"].([]any); ok {
		for _, form := range forms {
			eachField(form.(map[string]any), path, yield)
		}
	}
	if entry, ok := schema["items"].(map[string]any); ok {
		eachField(entry, path+"[]", yield)
	}
	if inner, ok := schema["additionalProperties"].(map[string]any); ok {
		eachField(inner, join(path, "*"), yield)
	}
}

// TestEveryFieldIsDescribed checks that each field has exactly one description, a sentence.
func TestEveryFieldIsDescribed(t *testing.T) {
	schema, _ := schemaOf(t)
	found := map[string]bool{}
	eachField(schema, "", func(path string, field map[string]any) {
		found[path] = true
		if text, _ := field["description"].(string); !strings.HasSuffix(text, ".") || len(text) < 10 {
			t.Errorf("%s has the description %q: declare it with a sentence", path, text)
		}
	})
	if len(found) < 70 {
		t.Errorf("the schema has only %d fields, want more", len(found))
	}
}

// TestDefaultsOfTheSchema writes each default into a file. The file must be valid, and the
// configuration unchanged.
func TestDefaultsOfTheSchema(t *testing.T) {
	schema, _ := schemaOf(t)
	const rules = `{name: a, key: [ip], limits: [5/s]`
	plain := func(within string) string {
		switch {
		case within == "rules[]":
			return rules
		case within == "rules[].on_exceed":
			return rules + ", on_exceed: {action: delay, max_wait: 1s"
		default:
			return ""
		}
	}
	tested := 0
	eachField(schema, "", func(path string, field map[string]any) {
		preset, ok := field["default"]
		if !ok {
			return
		}
		tested++
		within, name := "", path
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			within, name = path[:i], path[i+1:]
		}
		line := fmt.Sprintf("%s: %v", name, preset)
		if _, text := preset.(string); text {
			line = fmt.Sprintf("%s: %q", name, preset)
		}
		base, set := "version: 1\nrules: []\n", "" //nolint:wastedassign // because most cases need the first.
		switch before := plain(within); {
		case path == "rules[].on_exceed.action":
			base, set = "version: 1\nrules: ["+rules+"}]\n", "version: 1\nrules: ["+rules+", on_exceed: {"+line+"}}]\n"
		case path == "rules[].sub_windows":
			base, set = "version: 1\nrules: ["+rules+", algorithm: sliding_window}]\n", "version: 1\nrules: ["+rules+", algorithm: sliding_window, "+line+"}]\n"
		case path == "rules[].count_rejected":
			base, set = "version: 1\nrules: ["+rules+", algorithm: sliding_log}]\n", "version: 1\nrules: ["+rules+", algorithm: sliding_log, "+line+"}]\n"
		case path == "rules[].time_zone" || path == "rules[].week_starts" || path == "rules[].month_starts":
			all := "rules: [{name: a, key: [ip], algorithm: fixed_window, limits: [5/week, 9/month]"
			base, set = "version: 1\n"+all+"}]\n", "version: 1\n"+all+", "+line+"}]\n"
		case path == "rules[].in_flight_ttl":
			base, set = "version: 1\nrules: ["+rules+", in_flight: 5}]\n", "version: 1\nrules: ["+rules+", in_flight: 5, "+line+"}]\n"
		case within == "store_tls":
			base += "store: rediss://h\n"
			set = base + "store_tls: {" + line + "}\n"
		case path == "memcached_counters":
			base += "store: memcached://h\n"
			set = base + line + "\n"
		case path == "redis_slots" || path == "redis_dial_timeout" || path == "deny_cache" || within == "breaker":
			base += "store: redis+cluster://h\n"
			if set = base + line + "\n"; within != "" {
				set = base + within + ": {" + line + "}\n"
			}
		case strings.HasPrefix(within, "plans.") || strings.HasPrefix(within, "customers."):
			base, set = quotaFile(path, within, ""), quotaFile(path, within, ", "+line)
		case within == "domains.*":
			base += "domains: {a: {descriptors: []"
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within == "domains.*.descriptors[]":
			base += "domains: {a: {descriptors: [{key: k, limits: 5/s"
			base, set = base+"}]}}\n", base+", "+line+"}]}}\n"
		case within == "lease":
			base = strings.Replace(base, "rules: []", "rules: [{name: a, key: [ip], lease: a}]", 1) + "server: {}\nlease: {servers: ['h:1']"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "lease.election":
			base += "server: {}\nlease: {resources: [{match: a, capacity: 5/s}], election: {etcd: ['h:1'], group: g"
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within == "lease.limits":
			base += "server: {}\nlease: {resources: [{match: a, capacity: 5/s}], limits: {etcd: ['h:1']"
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within == "lease.resources[]":
			base += "server: {}\nlease: {resources: [{match: a, capacity: 5/s"
			base, set = base+"}]}\n", base+", "+line+"}]}\n"
		case within == "lease.holders.*":
			base += "server: {grpc: {auth: token}, callers: [{name: a, certificate: a, scopes: [lease]}]}\n" +
				"lease: {resources: [{match: a, capacity: 5/s}], holders: {a: {bands: [1]"
			base, set = base+"}}}\n", base+", "+line+"}}}\n"
		case before != "":
			closing := strings.Repeat("}", strings.Count(before, "{")) + "]\n"
			base, set = "version: 1\nrules: ["+before+closing, "version: 1\nrules: ["+before+", "+line+closing
		case within == "proxy":
			base += "proxy: {upstream: 'http://a:1'"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "cors":
			base += "cors: {origins: ['*']"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "admin.console":
			set = base + "admin: {console: {" + line + "}}\n"
		case within == "fair_share":
			base += "fair_share: {client: ip, capacity: 5"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "metering":
			base += "metering: {journal: j, lines: {folder: l}"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "metering.events" || within == "metering.lines":
			needed := map[string]string{"events": "url: 'http://a'", "lines": "folder: l"}[strings.TrimPrefix(within, "metering.")]
			base += "metering: {journal: j, " + strings.TrimPrefix(within, "metering.") + ": {" + needed
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within == "throttle":
			base += "throttle: {concurrency: 5"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "throttle.queue" || within == "throttle.auto_concurrency":
			base += "throttle: {concurrency: 5"
			base, set = base+"}\n", base+", "+strings.TrimPrefix(within, "throttle.")+": {"+line+"}}\n"
		case within == "server":
			base, set = base+"server: {}\n", base+"server: {"+line+"}\n"
		case within == "server.statsd[]":
			base += "server: {statsd: [{address: 'a:1'"
			base, set = base+"}]}\n", base+", "+line+"}]}\n"
		case within == "admin.history":
			set = base + "admin: {history: {" + line + "}}\n"
		case strings.HasPrefix(within, "server."):
			base, set = base+"server: {}\n", base+"server: {"+strings.TrimPrefix(within, "server.")+": {"+line+"}}\n"
		case strings.HasPrefix(within, "source."):
			needed := map[string]string{
				"etcd": "endpoints: ['http://h:1']", "http": "url: 'http://h'", "postgres": "hosts: ['h:1'], database: a, user: a",
			}[strings.TrimPrefix(within, "source.")]
			base += "source: {" + strings.TrimPrefix(within, "source.") + ": {" + needed
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within == "source":
			base += "source: {http: {url: 'http://h'}"
			base, set = base+"}\n", base+", "+line+"}\n"
		case within == "identity.jwt":
			base += "identity: {jwt: {keys: a"
			base, set = base+"}}\n", base+", "+line+"}}\n"
		case within != "":
			set = base + within + ": {" + line + "}\n"
		default:
			set = base + line + "\n"
		}
		want, got := parsed(t, base), parsed(t, set)
		want.places, got.places = nil, nil // The positions of fields differ.
		want.written, got.written = nil, nil
		got.Proxy.DataPlaneSetting = "" // The note names the setting, also of the default.
		if path == "rules[].cost" {
			got.Rules[0].Cost = want.Rules[0].Cost // A cost of 0 means 1.
		}
		if path == "fair_share.cost" {
			got.FairShare.Cost = want.FairShare.Cost // A cost of 0 means 1 here too.
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("with its default written out, the file gives a different configuration:\n%s\nwant\n%s", set, base)
		}
	})
	if tested < 25 {
		t.Errorf("only %d fields have a default, want more", tested)
	}
}

// quotaFile is a file with a plan and a customer, and with more fields at one place.
func quotaFile(path, within, more string) string {
	algorithm, per := "", "d"
	switch {
	case strings.HasSuffix(path, ".week_starts"):
		per = "week"
	case strings.HasSuffix(path, ".time_zone"), strings.HasSuffix(path, ".month_starts"):
		per = "month"
	}
	if strings.HasSuffix(path, ".sub_windows") {
		algorithm = ", algorithm: sliding_window"
	}
	at := func(place string) string {
		if place == within {
			return more
		}
		return ""
	}
	return "version: 1\nrules: [{name: a, key: [ip], quota: q}]\ndefault_plan: p\n" +
		"plans: {p: {quotas: {q: [{limit: 5/" + per + algorithm + at("plans.*.quotas.*[]") + "}]}" + at("plans.*") + "}}\n" +
		"customers: {192.0.2.1: {limits: {q: [{limit: 6/" + per + algorithm + at("customers.*.limits.*[]") + "}]}, raise: {until: 2030-01-31, " +
		"limits: {q: [{limit: 7/" + per + algorithm + at("customers.*.raise.limits.*[]") + "}]}" + at("customers.*.raise") + "}" + at("customers.*") + "}}\n"
}

// TestPatternsAgreeWithTheReaders draws random texts near each form. A pattern must accept each
// text that the reader accepts. If exact is set, the reader must accept each text that matches, or
// reject only its size.
func TestPatternsAgreeWithTheReaders(t *testing.T) {
	amount := func(err error) bool {
		return err == nil || strings.Contains(err.Error(), "out of range") || strings.Contains(err.Error(), "too ")
	}
	draw := rand.New(rand.NewPCG(7, 9))
	for _, row := range []struct {
		name, pattern string
		pieces        []string
		takes         func(text string) bool
		exact         bool // The reader checks only the form and the size.
	}{
		{"duration", zeroPattern, []string{"0", "1", "25", ".", "s", "ms", "µs", "us", "ns", "h", "d", "m", "-", " ", "x"}, func(text string) bool {
			_, err := rule.ParseDuration(text)
			return amount(err)
		}, true},
		{"limit", limitPattern, []string{"0", "500", "/", "5/", "500/2", "1", ".", "s", "ms", "us", "ns", "h", "d", "m", "-", " "}, func(text string) bool {
			_, err := rule.ParseLimit(text)
			return amount(err)
		}, true},
		{"percentage", percentPattern, []string{"0", "8", "80", "%", "-", ".", " "}, accepts("soft: %q", "{name: a, key: [ip], limits: [5/s], %s}"), true},
		{"key", keyPattern, []string{"ip", "all", "header", "jwt", "cookie", ":", "X-A", "path", " ", "é", "descriptor", "mtls_subject"}, func(text string) bool {
			_, err := rule.ParsePart(text)
			return err == nil
		}, false},
		{"network", networkPattern, []string{"10", ".", "0", "::", "2001:db8::", "/", "8", "32", "a", "g", "%eth0"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nfair_share: {client: ip, capacity: 1, exempt: {addresses: [%q]}}\n", text))
			return err == nil
		}, false},
		{"peer", peerPattern, []string{"unix", "10", ".", "0", "::", "2001:db8::", "/", "8", "32", "a", "g", "%eth0"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nidentity: {trusted_proxies: [%q]}\n", text))
			return err == nil
		}, false},
		{"header", headerPattern, []string{"X", "-", "_", "!", "#$%&'*+.^`|~", " ", "(", "é", "9", `"`}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nproxy: {upstream: 'http://a', request_id: %q}\n", text))
			return err == nil
		}, false},
		{"cost", costPattern, []string{"header:", "X-Cost", "-", " ", ":", "cookie:"}, accepts("cost: %q", "{name: a, key: [ip], limits: [5/s], %s}"), false},
		{"settle", settlePattern, []string{"header:", "trailer:", "X-Cost", "-", " ", ":", "cookie:"}, accepts("settle: %q", "{name: a, key: [ip], limits: [5/s], %s}"), false},
		{"client", clientPattern, []string{"ip", "all", "header", "jwt", "cookie", ":", "X-A", "path", " ", "host"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nidentity: {jwt: {keys: k}}\nfair_share: {client: %q, capacity: 1}\n", text))
			return err == nil
		}, false},
		{"mark", markPattern, []string{"a", " ", "yes", "\t", "é", "~", "!"}, accepts("on_exceed: {action: degrade, header: X-A, value: %q}", "{name: a, key: [ip], limits: [5/s], %s}"), false},
		{"location", locationPattern, []string{"/", "http://", "https://", "a", ".example", "{path}", "?b=c", ":8080"}, accepts("on_exceed: {action: redirect, location: %q}", "{name: a, key: [ip], limits: [5/s], %s}"), false},
		{"path", pathPattern, []string{"/", "a", "*", "b/*", " ", "."}, accepts("match: {path: %q}", "{name: a, key: [ip], limits: [5/s], %s}"), false},
		{"front", frontPattern, []string{":", "8080", "unix:", "/run", "/a.sock", "systemd", "[::1]", "localhost", "//", "web"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nproxy: {upstream: 'http://a', listen: %q}\n", text))
			return err == nil
		}, false},
		{"admin", adminPattern, []string{"off", ":", "8080", "127.0.0.1", "[::1]", "a"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nadmin: {health: %q}\n", text))
			return err == nil
		}, false},
		{"listener", listenerPattern, []string{"off", ":", "8080", "unix:", "/run", "/a.sock", "systemd", "[::1]", "localhost"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nserver: {http: off, grpc: {address: %q}}\n", text))
			_, alone := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nserver: {http: 'unix:/b.sock', grpc: %q}\n", text))
			return err == nil || alone == nil
		}, false},
		{"upstream", upstreamPattern, []string{"http", "HTTPS", "h2c", "unix:", "://", "/a", "a", ":80", "[::1]", "/", "."}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nproxy: {upstream: %q}\n", text))
			return err == nil
		}, false},
		{"store", storePattern, []string{"memory", "redis", "s", "+cluster", "+sentinel", "memcached", "://", ":a@", "h", ",", ":1", "/", "[::1]", "?", "@"}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nstore: %q\n", text))
			return err == nil
		}, false},
		{"server name", namePattern, []string{"a", ".", "example", "-", "_", "10", "::1", ":", "*", " "}, func(text string) bool {
			_, err := Parse("f", fmt.Appendf(nil, "version: 1\nrules: []\nproxy: {upstream: 'https://a', upstream_tls: {server_name: %q}}\n", text))
			return err == nil
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			pattern, taken := regexp.MustCompile(row.pattern), 0
			for range draws(1000) {
				text := ""
				for range 1 + draw.IntN(4) {
					text += row.pieces[draw.IntN(len(row.pieces))]
				}
				takes := row.takes(text)
				if takes {
					taken++
				}
				if matches := pattern.MatchString(text); takes && !matches || row.exact && matches && !takes {
					t.Fatalf("%q: the reader accepts it: %t, the pattern accepts it: %t, want the same", text, takes, matches)
				}
			}
			if taken < draws(1000)/100 {
				t.Errorf("the reader accepts only %d of the texts, want more", taken)
			}
		})
	}
}

// draws returns how many random texts to try: n, or n/20 with the race detector and in quick tests.
func draws(n int) int { return race.Fewer(n, n/20) }

// accepts returns a function that reports whether a rule with the field is valid, or only out of
// range.
func accepts(field, rule string) func(string) bool {
	return func(text string) bool {
		_, err := Parse("f", []byte("version: 1\nrules: ["+fmt.Sprintf(rule, fmt.Sprintf(field, text))+"]\n"))
		return err == nil || strings.Contains(err.Error(), "out of range")
	}
}

// TestKeyPatternKnowsEveryPart checks the pattern with the parts of keys that package rule names.
func TestKeyPatternKnowsEveryPart(t *testing.T) {
	_, err := rule.ParsePart("nothing like it")
	if err == nil {
		t.Fatal("it is a part")
	}
	_, list, found := strings.Cut(err.Error(), "use one of ")
	parts := strings.Split(list, ", ")
	if !found || len(parts) < 12 {
		t.Fatalf("cannot read the list of parts from the error: %v", err)
	}
	for _, part := range parts {
		if !regexp.MustCompile(keyPattern).MatchString(part) {
			t.Errorf("the pattern rejects the part %s", part)
		}
	}
}

// TestForgottenOutlines: object fails for a reader that declares nothing, and for a section that
// the sample lacks.
func TestForgottenOutlines(t *testing.T) {
	declared := func() *outline {
		o := &outline{}
		o.field("a").boolean(false)
		o.end()
		return o
	}
	if _, err := declared().object(""); err != nil {
		t.Error(err)
	}
	for name, forget := range map[string]func(*outline){
		"rules.b":               func(o *outline) { o.field("rules").field("b"); o.field("rules").end() },
		"rules[]":               func(o *outline) { o.field("rules").list(0, 1); o.field("rules").entries() },
		"all fields of rules":   func(o *outline) { o.field("rules").field("b").boolean(true) },
		"all fields of rules.*": func(o *outline) { o.field("rules").each(3).field("c").boolean(true) },
	} {
		o := declared()
		forget(o)
		if _, err := o.object(""); err == nil || !strings.Contains(err.Error(), name+" ") && !strings.Contains(err.Error(), name+":") {
			t.Errorf("outline without %s: got error %v, want one that names it", name, err)
		}
	}
}

// TestFormsThatDependOnOtherFields: a field whose form depends on another field has several forms
// and no default.
func TestFormsThatDependOnOtherFields(t *testing.T) {
	o := &outline{}
	for range 2 {
		o.number(429, 400, 599)
		o.numbers(302, []int{302, 303})
	}
	got, err := o.object("status")
	want := map[string]any{"anyOf": []map[string]any{
		{"type": "integer", "minimum": int64(400), "maximum": int64(599)}, {"enum": []int{302, 303}},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	var none *outline // Every normal read calls these methods on a nil outline.
	none.field("a").each(1).entries().text("", "", 0, 0)
	none.number(1, 1, 1)
	none.duration(time.Second, 0, time.Hour)
	none.from("A")
	none.under("a", "b")
	none.needs("a")
	none.restrict("a", "b", "c")
	none.dependent()
	none.end()
}

// TestVariablesOfTheSchema checks that each single value outside of the rules and domains names its variable
// in its description.
func TestVariablesOfTheSchema(t *testing.T) {
	schema, _ := schemaOf(t)
	eachField(schema, "", func(path string, field map[string]any) {
		_, section := field["properties"]
		_, names := field["additionalProperties"].(map[string]any)
		if section || names || strings.HasPrefix(path, "rules") || path == "exempt" || strings.HasPrefix(path, "exempt[") || strings.Contains(path, ".match.not.") || strings.HasPrefix(path, "throttle.classes") || strings.HasPrefix(path, "domains.") || strings.HasPrefix(path, "prices.") ||
			strings.HasPrefix(path, "plans.") || strings.HasPrefix(path, "customers.") || strings.HasPrefix(path, "source.") || strings.HasPrefix(path, "lease.") || strings.HasPrefix(path, "server.statsd") || strings.HasPrefix(path, "server.callers") && path != "server.callers_file" || path == "version" {
			return
		}
		if text, _ := field["description"].(string); !strings.HasSuffix(text, " Variable: "+variableOf(path)+".") {
			t.Errorf("%s: %q", path, text)
		}
	})
}

// TestBoundsOfTheSchema compares some parts of the schema with their JSON.
func TestBoundsOfTheSchema(t *testing.T) {
	schema, _ := schemaOf(t)
	want := map[string]string{
		"store":                         `default:memory pattern:` + storePattern + ` type:string`,
		"prefetch":                      `anyOf:[map[enum:[off auto]] map[maximum:1000000 minimum:1 type:integer] map[additionalProperties:false properties:map[batch:`,
		"redis_slots":                   `default:16384 maximum:16384 minimum:1 type:integer`,
		"rules[].sub_windows":           `default:4 maximum:256 minimum:1 type:integer`,
		"rules[].burst":                 fmt.Sprintf(`maximum:%d minimum:1 type:integer`, int64(headgate.MaxUnits)),
		"rules[].mode":                  `default:enforce enum:[enforce shadow off]`,
		"rules[].fallback":              `enum:[deny allow local error]`,
		"fair_share.capacity":           `maximum:1099511627776 minimum:0 type:integer`,
		"fair_share.reservation":        `default:10% pattern:^[0-9]+%$ type:string`,
		"fair_share.weights":            `additionalProperties:map[maximum:1000000 minimum:1 type:integer] maxProperties:10000 type:object`,
		"proxy.max_connections":         `default:16384 maximum:1048576 minimum:1 type:integer`,
		"proxy.max_requests":            `default:16384 maximum:1048576 minimum:1 type:integer`,
		"rules[].on_exceed.max_waiters": `default:10000 maximum:1000000 minimum:1 type:integer`,
	}
	eachField(schema, "", func(path string, field map[string]any) {
		expected, listed := want[path]
		if !listed {
			return
		}
		delete(want, path)
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(field)) {
			if name != "description" {
				parts = append(parts, fmt.Sprintf("%s:%v", name, field[name]))
			}
		}
		if got := strings.Join(parts, " "); got != expected && (path != "prefetch" || !strings.HasPrefix(got, expected)) {
			t.Errorf("%s: got %s, want %s", path, got, expected)
		}
	})
	if len(want) > 0 {
		t.Errorf("the schema lacks these fields: %v", want)
	}
}
