package envoyenv

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func read(lines ...string) (*Settings, []Note, error) { return Read(lines) }

func TestDefaults(t *testing.T) {
	s, notes, err := read()
	if err != nil || len(notes) != 0 {
		t.Fatalf("got %v, %v", notes, err)
	}
	redis := Redis{SocketType: "unix", Type: "single", URL: "/var/run/nutcracker/ratelimit.sock", Timeout: 10 * time.Second}
	second := redis
	second.URL = "/var/run/nutcracker/ratelimitpersecond.sock"
	want := &Settings{
		HTTP: Address{"0.0.0.0", 8080}, Debug: Address{"0.0.0.0", 6070},
		GRPC: GRPC{Address: Address{"0.0.0.0", 8081}, MaxAge: 24 * time.Hour, MaxAgeGrace: time.Hour},
		Log:  Log{"warn", "text"},
		Limits: Limits{
			Folder: Folder{Root: "/srv/runtime_data/current", App: "config", WatchRoot: true},
			XDS:    XDS{Server: "localhost:18000", NodeID: "default", Backoff: Backoff{10 * time.Second, time.Minute, 0.5, true}},
		},
		Decisions: Decisions{
			NearLimit: 0.8, LimitHeader: "RateLimit-Limit", RemainingHeader: "RateLimit-Remaining", ResetHeader: "RateLimit-Reset",
		},
		Stats: Stats{
			FlushInterval: 10 * time.Second, UseStatsd: true, Statsd: Address{"localhost", 8125},
			Prometheus: Prometheus{Address: ":9090", Path: "/metrics"},
		},
		Backend: "redis", Redis: redis, PerSecond: second,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got\n%+v\nwant\n%+v", s, want)
	}
}

// TestKinds reads valid values of every kind.
func TestKinds(t *testing.T) {
	for line, is := range map[string]func(*Settings) bool{
		"PORT=0x1F90":                             func(s *Settings) bool { return s.HTTP.Port == 8080 },
		"SHADOW_MODE=T":                           func(s *Settings) bool { return s.Decisions.Shadow },
		"USE_STATSD=0":                            func(s *Settings) bool { return !s.Stats.UseStatsd },
		"REDIS_TIMEOUT=1m30s":                     func(s *Settings) bool { return s.Redis.Timeout == 90*time.Second },
		"NEAR_LIMIT_RATIO=0.5":                    func(s *Settings) bool { return s.Decisions.NearLimit == 0.5 },
		"REDIS_TYPE=CLUSTER":                      func(s *Settings) bool { return s.Redis.Type == "cluster" },
		"LOG_LEVEL=Warning":                       func(s *Settings) bool { return s.Log.Level == "warn" },
		"LOG_FORMAT=logfmt":                       func(s *Settings) bool { return s.Log.Format == "text" },
		"LOG_FORMAT=JSON":                         func(s *Settings) bool { return s.Log.Format == "json" },
		"BACKEND_TYPE=":                           func(s *Settings) bool { return s.Backend == "redis" },
		"RUNTIME_APPDIRECTORY=":                   func(s *Settings) bool { return s.Limits.Folder.App == "" },
		"EXTRA_TAGS=a:b,c:":                       func(s *Settings) bool { return fmt.Sprint(s.Stats.ExtraTags) == "map[a:b c:]" },
		"EXTRA_TAGS=":                             func(s *Settings) bool { return s.Stats.ExtraTags == nil },
		"CONFIG_GRPC_XDS_NODE_METADATA=a=b=c,d=,": func(s *Settings) bool { return fmt.Sprint(s.Limits.XDS.NodeMetadata) == "map[a:b=c d:]" },
		"MEMCACHE_HOST_PORT=a:1,b:2":              func(s *Settings) bool { return len(s.Memcache.Servers) == 2 },
		"REDIS_AUTH=user:p=w":                     func(s *Settings) bool { return s.Redis.Auth.Reveal() == "user:p=w" },
		"CONFIG_TYPE=GRPC_XDS_SOTW":               func(s *Settings) bool { return s.Limits.UseXDS },
		"XDS_CLIENT_BACKOFF_MAX_INTERVAL=5s": func(s *Settings) bool {
			return s.Limits.XDS.BackoffSet && s.Limits.XDS.Backoff == Backoff{5 * time.Second, 5 * time.Second, 0.5, true}
		},
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:b": func(s *Settings) bool { return s.Limits.XDS.Headers["a"].Reveal() == "b" },
	} {
		if s, _, err := read(line); err != nil || !is(s) {
			t.Errorf("%s: got %+v, %v", line, s, err)
		}
	}
}

// TestFaults refuses invalid values. Each fault names the variable and the value, and says what to use.
func TestFaults(t *testing.T) {
	sentinel := `with REDIS_TYPE=sentinel, use the name of the master and the sentinels`
	for lines, want := range map[string]string{
		"PORT=65536":                                         `PORT "65536": use a whole number from 0 to 65535`,
		"GRPC_PORT=tcp://10.0.0.1:8081":                      `GRPC_PORT "tcp://10.0.0.1:8081": use a whole number`,
		"USE_STATSD=yes":                                     `USE_STATSD "yes": use true or false`,
		"USE_STATSD=":                                        `USE_STATSD "": use true or false`,
		"REDIS_TIMEOUT=10":                                   `REDIS_TIMEOUT "10": use a duration with a unit`,
		"REDIS_TIMEOUT=-1s":                                  `REDIS_TIMEOUT "-1s": use a duration`,
		"NEAR_LIMIT_RATIO=NaN":                               `NEAR_LIMIT_RATIO "NaN": use a number from 0 to 1`,
		"REDIS_TYPE=ring":                                    `REDIS_TYPE "ring": use one of single, cluster, sentinel`,
		"REDIS_SOCKET_TYPE=udp":                              `REDIS_SOCKET_TYPE "udp": use one of unix, tcp, tls`,
		"CONFIG_TYPE=file":                                   `CONFIG_TYPE "file": use FILE or GRPC_XDS_SOTW`,
		"BACKEND_TYPE=memcached":                             `BACKEND_TYPE "memcached": use redis or memcache`,
		"EXTRA_TAGS=a":                                       `EXTRA_TAGS "a": use key:value,key:value`,
		"EXTRA_TAGS=a:b:c":                                   `EXTRA_TAGS "a:b:c": use key:value`,
		"CONFIG_GRPC_XDS_NODE_METADATA=a:b":                  `CONFIG_GRPC_XDS_NODE_METADATA "a:b": use key=value`,
		"MEMCACHE_HOST_PORT=" + comma(maxItems):              "use at most 1000 items",
		"REDIS_TYPE=Sentinel|REDIS_URL=h:6379":               `REDIS_URL "h:6379": ` + sentinel,
		"REDIS_TYPE=sentinel|REDIS_URL=h:1,h:2":              `REDIS_URL "h:1,h:2": ` + sentinel,
		"REDIS_TYPE=sentinel|REDIS_URL=u:pw@h:1":             `REDIS_URL (not shown): ` + sentinel,
		"REDIS_URL=":                                         `REDIS_URL "": use the address of Redis`,
		"REDIS_PERSECOND=true|REDIS_PERSECOND_TYPE=sentinel": `REDIS_PERSECOND_URL "/var/run`,
		"BACKEND_TYPE=memcache":                              `MEMCACHE_HOST_PORT "": with BACKEND_TYPE=memcache`,
		"BACKEND_TYPE=memcache|MEMCACHE_SRV=a|MEMCACHE_HOST_PORT=b":                                                                `MEMCACHE_SRV "a": MEMCACHE_HOST_PORT is set too`,
		"GRPC_SERVER_USE_TLS=true|GRPC_SERVER_TLS_CERT=c|GRPC_SERVER_TLS_KEY=k|GRPC_CLIENT_TLS_SAN=a":                              `GRPC_CLIENT_TLS_SAN "a": set GRPC_CLIENT_TLS_CACERT too`,
		"GRPC_SERVER_USE_TLS=true|GRPC_SERVER_TLS_CERT=c|GRPC_SERVER_TLS_KEY=k|GRPC_CLIENT_TLS_CACERT=a|GRPC_CLIENT_TLS_SAN=a://b": `GRPC_CLIENT_TLS_SAN "a://b": use the DNS name`,
		"GRPC_SERVER_USE_TLS=true":                                             `GRPC_SERVER_USE_TLS "true": set GRPC_SERVER_TLS_CERT`,
		"REDIS_TLS_CLIENT_CERT=c":                                              `REDIS_TLS_CLIENT_CERT "c" and REDIS_TLS_CLIENT_KEY "": set both`,
		"CONFIG_TYPE=GRPC_XDS_SOTW|CONFIG_GRPC_XDS_SERVER_URL=":                `CONFIG_GRPC_XDS_SERVER_URL "": use the address`,
		"USE_DOG_STATSD=true|USE_DOG_STATSD_MOGRIFIERS=A":                      `DOG_STATSD_MOGRIFIER_A_PATTERN "": use a regular expression`,
		"HOST=" + strings.Repeat("x", 9) + "|PORT=" + strings.Repeat("9", 500): `99"…: use`,
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=s3cret":                     `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS (not shown): use`,
	} {
		s, _, err := read(strings.Split(lines, "|")...)
		if s != nil || err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 || strings.Contains(err.Error(), "pw@") {
			t.Errorf("%.80s: got %v, want %s", lines, err, want)
		}
	}
	_, _, err := read("PORT=a", "REDIS_TIMEOUT=b", "USE_STATSD=c")
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 2 {
		t.Errorf("want three faults at once, got %v", err)
	}
}

func comma(n int) string { return strings.Repeat(",", n) }

func TestMogrifiers(t *testing.T) {
	s, _, err := read("USE_DOG_STATSD=true", "USE_DOG_STATSD_MOGRIFIERS=A", "DOG_STATSD_MOGRIFIER_A_PATTERN=^a\\.(.*)$",
		"DOG_STATSD_MOGRIFIER_A_NAME=$1", "DOG_STATSD_MOGRIFIER_A_TAGS=k:$1")
	want := []Mogrifier{{"A", `^a\.(.*)$`, "$1", map[string]string{"k": "$1"}}}
	if err != nil || !reflect.DeepEqual(s.Stats.Mogrifiers, want) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestSecrets prints the settings. No secret is visible.
func TestSecrets(t *testing.T) {
	s, _, err := read("REDIS_AUTH=s3cret", "REDIS_SENTINEL_AUTH=s3cret", "REDIS_PERSECOND_AUTH=s3cret",
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=token:s3cret")
	if err != nil || strings.Contains(fmt.Sprintf("%+v %#v", s, s), "s3cret") {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestNotes(t *testing.T) {
	_, notes, err := read("REDIS_POOL_SIZE=x", "OTEL_EXPORTER_OTLP_ENDPOINT=e", "TRACING_ENABLED=true", "GRPC_SERVER_TLS_CA_CERT=c",
		"REDIS_URI=h", "RUNTIME_ROT=r", "REDISURL=h", "REDIS_SERVICE_HOST=h", "REDIS_PORT=tcp://h", "REDIS_PORT_6379_TCP=x", "PATH=/bin", "HOME=/")
	want := "[{[GRPC_SERVER_TLS_CA_CERT OTEL_EXPORTER_OTLP_ENDPOINT REDIS_POOL_SIZE TRACING_ENABLED] " +
		"these variables are accepted and have no effect in Headgate} " +
		"{[REDISURL] unknown variable: did you mean REDIS_URL?} {[REDIS_URI] unknown variable: did you mean REDIS_URL?} " +
		"{[RUNTIME_ROT] unknown variable: did you mean RUNTIME_ROOT?}]"
	if err != nil || fmt.Sprint(notes) != want {
		t.Errorf("got %v, %v\nwant %s", notes, err, want)
	}
}

// TestNotesOfTheStore: values that cannot be followed, and names that only a newer reference may know, are noted.
func TestNotesOfTheStore(t *testing.T) {
	for lines, want := range map[string]string{
		"REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR=true":                                          "[]",
		"REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR=false":                                         "[{[REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR] false has no effect: ",
		"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true":                                              "[]",
		"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true|BACKEND_TYPE=memcache|MEMCACHE_HOST_PORT=a:1": "[{[REDIS_HEALTH_CHECK_ACTIVE_CONNECTION] true has no effect with BACKEND_TYPE=memcache",
		"REDIS_USE_EXPLICIT_PIPELINE=true|REDIS_PERSECOND_USE_EXPLICIT_PIPELINE=true|GRPC_MAX_CONCURRENT_STREAMS=3|REQUEST_TIMEOUT=1s": "[{[GRPC_MAX_CONCURRENT_STREAMS " +
			"REDIS_PERSECOND_USE_EXPLICIT_PIPELINE REDIS_USE_EXPLICIT_PIPELINE REQUEST_TIMEOUT] these variables are accepted and have no effect",
		"REDIS_SOME_NEW_BEHAVIOR=1|REDIS_MASTER_SERVICE_HOST=h|REDIS_MASTER_PORT_6379_TCP_ADDR=a|REDIS_SERVICE_PORT_MAIN=1": "[{[REDIS_SOME_NEW_BEHAVIOR] these variables are not known",
	} {
		_, notes, err := read(strings.Split(lines, "|")...)
		if err != nil || !strings.HasPrefix(fmt.Sprint(notes), want) || want == "[]" && len(notes) > 0 {
			t.Errorf("%s: got %v, %v, want %s", lines, notes, err, want)
		}
	}
	if _, _, err := read("REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR=maybe"); err == nil || !strings.Contains(err.Error(), "use true or false") {
		t.Errorf("a value that is no boolean: %v", err)
	}
}

// TestVariables checks that each variable is declared once, with its description.
func TestVariables(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variables() {
		if seen[v.Name] || v.Kind == "" || v.Meaning == "" {
			t.Errorf("%+v is declared twice, or without kind or meaning", v)
		}
		seen[v.Name] = true
	}
}

// TestDeployments reads the environments of other projects. One of them has a Redis address without the
// master name that its sentinels need, which envoyproxy/ratelimit refuses too.
func TestDeployments(t *testing.T) {
	for file, lines := range deployments(t) {
		s, notes, err := Read(lines)
		if strings.HasSuffix(file, withoutMaster) {
			if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.HasPrefix(err.Error(), "REDIS_URL ") {
				t.Errorf("%s: got %v, want one fault of REDIS_URL", file, err)
			}
			continue
		}
		if err != nil || len(notes) > 1 || s.Limits.Folder.Root != "/data" {
			t.Errorf("%s: got %v, %v", file, notes, err)
		}
	}
}

// withoutMaster is the deployment whose Redis address lacks the name of the master.
const withoutMaster = "patch-deployment-containers.env"

// deployments gives the environments of other projects, by file.
func deployments(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.env")
	more, err2 := filepath.Glob("testdata/*.env")
	if files = append(files, more...); err != nil || err2 != nil || len(files) != 21 {
		t.Fatalf("found %d files, want 21", len(files))
	}
	all := map[string][]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	}
	return all
}

// FuzzRead feeds lines to Read, which must not crash.
func FuzzRead(f *testing.F) {
	f.Add("REDIS_TYPE=sentinel\nREDIS_URL=a,b")
	f.Fuzz(func(t *testing.T, text string) {
		if s, _, err := Read(strings.Split(text, "\n")); (s == nil) != (err != nil) {
			t.Errorf("got %v, %v", s, err)
		}
	})
}
