package envoyenv

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestConfigurationOfDeployments makes a valid configuration from the variables of each deployment.
func TestConfigurationOfDeployments(t *testing.T) {
	for name, environ := range deployments(t) {
		if strings.HasSuffix(name, withoutMaster) {
			environ = append(environ, "REDIS_URL=main,sentinel:26379")
		}
		if strings.HasSuffix(name, "redis-url-secret-ref.env") {
			environ = append(environ, "REDIS_URL=redis:6379") // The deployment has it in a secret.
		}
		s, _, err := Read(environ)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := s.Configuration()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := config.Parse(name, text); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// TestReplacedStore: HEADGATE_STORE may name any store, so the configuration has no setting of one kind.
func TestReplacedStore(t *testing.T) {
	s, _, err := read("REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379", "HEADGATE_STORE=memory")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := s.Configuration(); err != nil || strings.Contains(string(text), "redis_dial_timeout") {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestConfiguration checks how single variables show in the configuration.
func TestConfiguration(t *testing.T) {
	base := []string{"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379"}
	for _, row := range []struct{ variables, want string }{
		{"", "store: redis://redis:6379\n"},
		{"REDIS_AUTH=p@ss", "store: redis://:p%40ss@redis:6379\n"},
		{"REDIS_AUTH=ann:pa:ss", "store: redis://ann:pa%3Ass@redis:6379\n"},
		{"REDIS_TLS=true REDIS_TLS_CACERT=/ca", "store: rediss://redis:6379\n"},
		{"REDIS_TYPE=CLUSTER REDIS_URL=a:1,b:2", "store: redis+cluster://a:1,b:2\n"},
		{"REDIS_TYPE=Sentinel REDIS_URL=main,a:1,b:2", "store: redis+sentinel://a:1,b:2/main\n"},
		{"REDIS_TYPE=Sentinel REDIS_SOCKET_TYPE=unix REDIS_URL=main,a:1", "store: redis+sentinel://a:1/main\n"},
		{"REDIS_SOCKET_TYPE=unix REDIS_URL=/run/a@b?.sock REDIS_TLS=true", "store: redis+unix:///run/a%40b%3F.sock\n"},
		{"REDIS_SOCKET_TYPE=unix REDIS_URL=/run/a.sock REDIS_AUTH=ann:pass", "store: redis+unix://ann:pass@/run/a.sock\n"},
		{"REDIS_SOCKET_TYPE=tls", "store: rediss://redis:6379\n"},
		{
			"REDIS_PERSECOND=true REDIS_PERSECOND_SOCKET_TYPE=tcp REDIS_PERSECOND_URL=b:1 REDIS_PERSECOND_AUTH=p",
			"store_per_second: redis://:p@b:1\n",
		},
		{"REDIS_TLS=true REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true", "store_tls:\n    skip_hostname_verification: true\n"},
		{"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true", "store: redis://redis:6379\n"},
		{"REDIS_SENTINEL_AUTH=p", "store: redis://redis:6379\n"},
		{"REDIS_TYPE=sentinel REDIS_URL=main,a:1 REDIS_SENTINEL_AUTH=p:a", "store_sentinel_password: a\n"},
		{"REDIS_TYPE=sentinel REDIS_URL=main,a:1 REDIS_SENTINEL_AUTH=p:a", "store_sentinel_user: p\n"},
		{"REDIS_TYPE=sentinel REDIS_URL=main,a:1 REDIS_SENTINEL_AUTH=word", "store_sentinel_password: word\n"},
		{
			"REDIS_PERSECOND=true REDIS_PERSECOND_TYPE=sentinel REDIS_PERSECOND_URL=main,b:1 REDIS_PERSECOND_SENTINEL_AUTH=word",
			"store_sentinel_password: word\n",
		},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b", "store: memcached+srv://_a._tcp.b\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b MEMCACHE_SRV_REFRESH=90s", "memcached_srv_refresh: 1m30s\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b MEMCACHE_SRV_REFRESH=1ns", "memcached_srv_refresh: 1s\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b MEMCACHE_SRV_REFRESH=100h", "memcached_srv_refresh: 24h0m0s\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b", "memcached_srv_refresh: 0s\n"},
		{"", "redis_dial_timeout: 10s\n"},
		{"REDIS_TIMEOUT=300ms", "redis_dial_timeout: 300ms\n"},
		{"REDIS_TIMEOUT=0", "redis_dial_timeout: 1ms\n"},
		{"REDIS_TIMEOUT=2h", "redis_dial_timeout: 1m0s\n"},
		{"REDIS_TIMEOUT=2s REDIS_PERSECOND_TIMEOUT=30s", "redis_dial_timeout: 2s\n"},
		{"REDIS_TIMEOUT=2s REDIS_PERSECOND=true REDIS_PERSECOND_TIMEOUT=3s", "redis_dial_timeout: 3s\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_SRV=_a._tcp.b MEMCACHE_TLS=true", "store: memcacheds+srv://_a._tcp.b\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1 MEMCACHE_TLS=true", "store: memcacheds://a:1\n"},
		{
			"BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1 MEMCACHE_TLS=true MEMCACHE_TLS_CACERT=/ca MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION=true",
			"store_tls:\n    ca: /ca\n    skip_hostname_verification: true\n",
		},
		{"REDIS_PERSECOND=true", "store_per_second: redis+unix:///var/run/nutcracker/ratelimitpersecond.sock\n"},
		{"REDIS_PERSECOND=true REDIS_PERSECOND_TYPE=cluster REDIS_PERSECOND_URL=b:1,c:1", "store_per_second: redis+cluster://b:1,c:1\n"},
		{
			"REDIS_PERSECOND=true REDIS_PERSECOND_SOCKET_TYPE=tcp REDIS_PERSECOND_URL=b:1 REDIS_PERSECOND_TLS=true REDIS_TLS_CACERT=/ca",
			"store_tls:\n    ca: /ca\n",
		},
		{"REDIS_PERSECOND=true REDIS_PERSECOND_SOCKET_TYPE=tcp REDIS_PERSECOND_URL=redis:6379", "store: redis://redis:6379\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1 REDIS_PERSECOND=true", "store: memcached://a:1\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1,b:2", "store: memcached://a:1,b:2\n"},
		{"", "address: 0.0.0.0:8081\n"},
		{"HOST=::", "address: '[::]:8080'\n"},
		{"GRPC_UDS=/run/a.sock", "address: unix:/run/a.sock\n"},
		{"GRPC_MAX_CONNECTION_AGE=90s", "max_connection_age: 1m30s\n"},
		{"GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=c GRPC_SERVER_TLS_KEY=k GRPC_CLIENT_TLS_CACERT=a", "client_ca: a\n"},
		{"SHADOW_MODE=true", "mode: shadow\n"},
		{"NEAR_LIMIT_RATIO=0.65", "near_limit: 65%\n"},
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=1", "stop_increment: true\n"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_RESET_HEADER=X-Reset", "reset_header: X-Reset\n"},
		{"CACHE_KEY_PREFIX=shop_", "namespace: shop_\n"},
		{"GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=c GRPC_SERVER_TLS_KEY=k GRPC_CLIENT_TLS_CACERT=a GRPC_CLIENT_TLS_SAN=b.example", "client_name: b.example\n"},
		{"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true", "unhealthy_without_store: true\n"},
		{"", "unhealthy_without_store: false\n"},
		{"BACKEND_TYPE=memcache MEMCACHE_HOST_PORT=a:1 REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true", "unhealthy_without_store: false\n"},
		{"LOG_LEVEL=Trace", "level: debug\n"},
		{"LOG_FORMAT=json", "format: json\n"},
		{"", "format: text\n"},
		{"", "store_timeout: 15ms\n"},
	} {
		s, _, err := Read(append(base[:2:2], strings.Fields(row.variables)...))
		if err != nil {
			t.Errorf("%s: %v", row.variables, err)
			continue
		}
		text, err := s.Configuration()
		if err != nil || !strings.Contains(string(text), row.want) {
			t.Errorf("%s: %v, got\n%s\nwant %s", row.variables, err, text, row.want)
		}
		if _, err := config.Parse("variables", text); err != nil {
			t.Errorf("%s: %v", row.variables, err)
		}
	}
}

// TestUnsupportedVariables: what cannot be followed is a fault with the variable's name.
func TestUnsupportedVariables(t *testing.T) {
	for variables, want := range map[string]string{
		"REDIS_URL=a:1": "REDIS_URL: with REDIS_SOCKET_TYPE=unix, the default, use the path of a socket, or set REDIS_SOCKET_TYPE=tcp",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1 REDIS_PERSECOND=true REDIS_PERSECOND_URL=b:1":                                                         "REDIS_PERSECOND_URL: with REDIS_PERSECOND_SOCKET_TYPE=unix",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://:secret@a:1":                                                                                      "REDIS_URL: leave out \"redis://\" and a password",
		"REDIS_TYPE=sentinel REDIS_URL=m,a:1 REDIS_SENTINEL_AUTH=secret REDIS_PERSECOND=1 REDIS_PERSECOND_TYPE=sentinel REDIS_PERSECOND_URL=m,b:1": "REDIS_SENTINEL_AUTH and REDIS_PERSECOND_SENTINEL_AUTH differ",
		"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1 CACHE_KEY_PREFIX=a:b REDIS_SENTINEL_AUTH=secret":                                                      "CACHE_KEY_PREFIX \"a:b\": namespace",
	} {
		s, _, err := Read(strings.Fields(variables))
		if err != nil {
			t.Errorf("%s: %v", variables, err)
			continue
		}
		if _, err = s.Configuration(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: got %v, want %s", variables, err, want)
		}
	}
}
