package logs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// HowToLog returns the setting of a server that writes a key part to its log, in the form that the preset of a format reads. part is in the
// form of rule.Part.String, or duration. For a format that no server owns, the setting is that of nginx. HowToLog says so if a server
// cannot log the part.
func HowToLog(format, part string) string {
	parsed, err := rule.ParsePart(part)
	if err != nil && part != durationPart {
		return fmt.Sprintf("%s is no part of a key", part)
	}
	p := wanted{text: part, word: parsed.Word(), name: parsed.Name()}
	for i := range settingsTable {
		if settingsTable[i].kind == format {
			return settingsTable[i].write(&p)
		}
	}
	if format == kindsTable[kindJSON].Name {
		return "log " + part + " in a field of its own, and name the field with --field " + part + "=NAME"
	}
	return "the " + format + " format has no " + part + ": for nginx, write " + nginxSetting(&p)
}

// durationPart is the duration of requests, which is no part of a key.
const durationPart = "duration"

// wanted is a part that a log lacks.
type wanted struct{ text, word, name string }

// usual reports whether each of the settings writes the part.
func (p *wanted) usual() bool {
	return p.text == durationPart || slices.Contains([]string{"all", "ip", "host", "path", "query", "method"}, p.word)
}

// settingsTable has the settings of each server.
var settingsTable = []struct {
	kind  string
	write func(p *wanted) string
}{
	{"headgate", headgateSetting},
	{"nginx", nginxSetting},
	{"apache", apacheSetting},
	{"lighttpd", lighttpdSetting},
	{"haproxy", haproxySetting},
	{"envoy", envoySetting},
	{"caddy", caddySetting},
	{"traefik", traefikSetting},
	{"varnish", varnishSetting},
	{"squid", squidSetting},
}

// expressions are the terms of a server's log format for the words of parts. %s is the name of the part.
type expressions map[string]string

// term returns the term for a part, or "" if the server has none.
func (e expressions) term(p *wanted) string {
	format, known := e[p.word]
	if p.text == durationPart {
		return ""
	}
	if !known && (p.word == "xff_ip" || p.word == "user_ip") {
		return e["forwarded"]
	}
	if strings.Contains(format, "%s") {
		return strings.ReplaceAll(format, "%s", p.name)
	}
	return format
}

// attribute returns ` name="term"` with quotes of a form, and nothing for a part that the format has anyway.
func attribute(p *wanted, term, quote string) string {
	name := p.text
	switch {
	case term == "":
		return ""
	case p.word == "xff_ip" || p.word == "user_ip": // Only the configuration knows the trusted proxies.
		name = partForwarded
	}
	return " " + name + "=" + quote + term + quote
}

// unable says that a server cannot log a part, or returns the setting.
func unable(server, setting string, p *wanted, term string) string {
	if term == "" && !p.usual() {
		return server + " cannot log " + p.text + " by itself: log it at a server that knows it, such as headgate proxy with log.identity"
	}
	return setting
}

func headgateSetting(p *wanted) string {
	if p.usual() {
		return "log: {access: json}"
	}
	return "log: {access: json, identity: [" + p.text + "], keys_secret_file: keys.secret}"
}

func nginxSetting(p *wanted) string {
	term := expressions{
		"header": "$http_" + strings.ToLower(strings.ReplaceAll(p.name, "-", "_")), "cookie": "$cookie_%s",
		"forwarded": "$http_x_forwarded_for", "mtls_subject": "$ssl_client_s_dn", "region": "$geoip2_data_country_code",
	}.term(p)
	return unable("nginx", `log_format headgate '$remote_addr - - [$time_local] "$request" $status $body_bytes_sent "$http_referer" `+
		`"$http_user_agent" msec=$msec request_time=$request_time request_length=$request_length uri="$uri" host="$http_host"`+
		attribute(p, term, `"`)+`'; access_log /var/log/nginx/access.log headgate;`, p, term)
}

func apacheSetting(p *wanted) string {
	term := expressions{
		"header": "%{%s}i", "cookie": "%{%s}C", "forwarded": "%{X-Forwarded-For}i", "mtls_subject": "%{SSL_CLIENT_S_DN}x",
		"region": "%{MM_COUNTRY_CODE}e",
	}.term(p)
	return unable("Apache", `LogFormat "%a - - %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" begin=%{begin:usec}t D=%D `+
		`host=\"%{Host}i\"`+attribute(p, term, `\"`)+`" headgate`, p, term)
}

func lighttpdSetting(p *wanted) string {
	term := expressions{"header": "%{%s}i", "cookie": "%{%s}C", "forwarded": "%{X-Forwarded-For}i"}.term(p)
	return unable("lighttpd", `accesslog.format = "%h - - %t \"%r\" %s %b \"%{Referer}i\" \"%{User-Agent}i\" begin=%{begin:usec}t D=%D `+
		`host=\"%{Host}i\"`+attribute(p, term, `\"`)+`"`, p, term)
}

func haproxySetting(p *wanted) string {
	term := expressions{
		"header": "req.hdr(%s)", "cookie": "req.cook(%s)", "forwarded": "req.hdr(X-Forwarded-For)", "mtls_subject": "ssl_c_s_dn",
		"jwt": "http_auth_bearer,jwt_payload_query('$.%s')", "region": "src,map_ip(/etc/haproxy/regions.map)",
	}.term(p)
	if p.word == "host" {
		term = "req.hdr(Host)"
	}
	before := ""
	if term != "" {
		before, term = "http-request set-var(txn.logged) "+term+"\n", "[var(txn.logged)]"
	}
	setting := `log-format "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r`
	if term != "" {
		name := strings.TrimSuffix(attribute(p, "x", ""), "x")
		setting += name + "%{+Q,+E}" + term
	}
	return unable("HAProxy", before+setting+`"`, p, term)
}

func envoySetting(p *wanted) string {
	term := expressions{
		"header": "%REQ(" + strings.ToUpper(p.name) + ")%", "forwarded": "%REQ(X-FORWARDED-FOR)%",
		"mtls_subject": "%DOWNSTREAM_PEER_SUBJECT%", "cookie": "%REQ(COOKIE)%",
		"jwt": "%DYNAMIC_METADATA(envoy.filters.http.jwt_authn:payload:%s)%",
	}.term(p)
	name := p.text
	switch p.word {
	case "xff_ip", "user_ip":
		name = partForwarded
	case "cookie":
		name = partCookies
	}
	setting := `json_format: {start_time: "%START_TIME%", duration: "%DURATION%", response_code: "%RESPONSE_CODE%", ` +
		`method: "%REQ(:METHOD)%", path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", authority: "%REQ(:AUTHORITY)%", ` +
		`downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%"`
	if term != "" {
		setting += fmt.Sprintf(", %q: %q", name, term)
	}
	return unable("Envoy", setting+"}", p, term)
}

func caddySetting(p *wanted) string {
	switch p.word {
	case "cookie":
		return "{ servers { log_credentials } } in the global options: Caddy writes REDACTED for cookies without it"
	case "mtls_subject":
		return "log_append mtls_subject {tls_client_subject} beside the directive log"
	case "region", "jwt":
		return unable("Caddy", "", p, "")
	default:
		return "log { format json }: Caddy logs each header, the host and the address"
	}
}

func traefikSetting(p *wanted) string {
	const start = "accessLog: {format: json, fields: {headers: {names: {"
	switch p.word {
	case "header":
		return start + p.name + ": keep}}}}"
	case "cookie":
		return start + "Cookie: keep}}}}"
	case "xff_ip", "user_ip":
		return start + "X-Forwarded-For: keep}}}}"
	case "mtls_subject", "region", "jwt":
		return unable("Traefik", "", p, "")
	default:
		return "accessLog: {format: json}"
	}
}

func varnishSetting(p *wanted) string {
	term := expressions{"header": "%{%s}i", "cookie": "%{Cookie}i", "forwarded": "%{X-Forwarded-For}i"}.term(p)
	named := *p
	if p.word == "cookie" {
		named.text = partCookies
	}
	return unable("Varnish", `varnishncsa -F '%h - - %t "%r" %s %b "%{Referer}i" "%{User-agent}i" start=%{VSL:Timestamp:Start[1]}x `+
		`req=%{VSL:Timestamp:Req[1]}x D=%D host="%{Host}i"`+attribute(&named, term, `"`)+`'`, p, term)
}

func squidSetting(p *wanted) string {
	term := expressions{"header": "%{%s}>h", "cookie": "%{Cookie}>h", "forwarded": "%{X-Forwarded-For}>h"}.term(p)
	named := *p
	if p.word == "cookie" {
		named.text = partCookies
	}
	return unable("squid", `logformat headgate %ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt`+
		attribute(&named, term, `"`)+"\naccess_log stdio:/var/log/squid/access.log logformat=headgate", p, term)
}
