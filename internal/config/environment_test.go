package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
)

// TestEnvironment sets each variable to a value that differs from the file. It also checks that
// a variable hides an invalid value in the file.
func TestEnvironment(t *testing.T) {
	const file = `
version: 1
store: memory
store_timeout: 1ms
fallback: deny
max_memory: 1MiB
on_full: deny
shutdown_timeout: 1s
evaluate: all_or_nothing
log: {level: info, decisions: none, access: combined, access_file: l, keys: plain}
identity: {trusted_proxies: [192.0.2.1], user_ip_headers: [X-A], region_db: r, jwt: {keys: k, issuer: i, audience: a, leeway: 1s}}
rules: []
plans: {free: {mode: "off"}, paid: {mode: "off"}}
default_plan: free
paths: {ignore_case: false, ignore_trailing_slash: false, ignore_parameters: false}
envoy: {month: 30d}
proxy:
  listen: ":1"
  upstream: "https://a"
  tls: {cert: c, key: k, client_ca: a, client_auth: require, client_name: a}
  upstream_tls: {ca: a, cert: c, key: k, server_name: n}
  proxy_protocol: [192.0.2.1]
  read_header_timeout: 1s
  idle_timeout: 1s
  body_idle_timeout: 1s
  upstream_timeout: 1s
  max_header: 1KiB
  max_connections: 1
  max_connections_per_address: 1
  max_requests: 1
  request_id: X-A-Id
  header_style: none
  data_plane: standard
fair_share: {client: ip, anonymous: guests, capacity: 50, cycle: 1m, reservation: 1%, division: loan, reclaim: at_once,
  new_clients_per_cycle: 1, forget_after: 1, max_clients: 1, cost: "header:X-A", max_cost: 1, count_once: "header:X-A", mode: enforce}
throttle: {mode: enforce, concurrency: 2, deadline: 1s, max_deadline: 10s, tenant: ip, criticality: sheddable, work: reported, streams: handshake,
  queue: {part_of_deadline: 1%, max_waiters: 1}, max_tenants: 1, auto_concurrency: {mode: shadow, min: 1, max: 9}}
metering: {journal: j, max_size: 1MiB, sync: second, instance: a, every: 1s, max_customers: 1,
  events: {url: "http://a", token_file: t, ca: c, max_events: 1, max_size: 1KiB, timeout: 1s},
  lines: {folder: l, max_size: 1KiB, max_age: 1s, keep: 1}}
cors: {origins: ["https://a.example"], credentials: false, preflights: exempt}
admin: {listen: "127.0.0.1:2", health: "127.0.0.1:3", tls: {cert: a.crt, key: a.key}, peers: ["https://a.example:1"], peers_token_file: t, peers_ca: c}
`
	tested := map[string]bool{}
	for _, row := range []struct {
		variable, text string
		got            func(*Config) any
	}{
		{"HEADGATE_STORE", "memory", func(c *Config) any { return c.Store }},
		{"HEADGATE_STORE_TIMEOUT", "9ms", func(c *Config) any { return c.StoreTimeout.String() }},
		{"HEADGATE_FALLBACK", "allow", func(c *Config) any { return c.Fallback.String() }},
		{"HEADGATE_MAX_MEMORY", "9MiB", func(c *Config) any { return field.FormatSize(c.MaxMemory) }},
		{"HEADGATE_DEFAULT_PLAN", "paid", func(c *Config) any { return c.DefaultPlan }},
		{"HEADGATE_MODE", "shadow", func(c *Config) any { return c.Mode.String() }},
		{"HEADGATE_INSTANCE", "eu-1", func(c *Config) any { return c.Instance }},
		{"HEADGATE_DECISION_HEADER", "false", func(c *Config) any { return strconv.FormatBool(c.DecisionHeader) }},
		{"HEADGATE_NAMESPACE", "shop-1", func(c *Config) any { return c.Namespace }},
		{"HEADGATE_ON_FULL", "allow", func(c *Config) any { return c.OnFull.String() }},
		{"HEADGATE_SHUTDOWN_TIMEOUT", "9s", func(c *Config) any { return c.ShutdownTimeout.String() }},
		{"HEADGATE_RETRY_AFTER_MAX", "9s", func(c *Config) any { return c.RetryAfterMax.String() }},
		{"HEADGATE_X_SHOULD_RETRY", "true", func(c *Config) any { return strconv.FormatBool(c.XShouldRetry) }},
		{"HEADGATE_EVALUATE", "independent", func(c *Config) any { return map[bool]string{true: "independent"}[c.Independent] }},
		{"HEADGATE_IDENTITY_TRUSTED_PROXIES", "10.0.0.0/8,unix", func(c *Config) any {
			return strings.Trim(fmt.Sprint(c.Identity.TrustedProxies), "[]") + map[bool]string{true: ",unix"}[c.Identity.TrustUnix]
		}},
		{"HEADGATE_IDENTITY_USER_IP_HEADERS", "X-B,X-C", func(c *Config) any { return strings.Join(c.Identity.UserIPHeaders, ",") }},
		{"HEADGATE_IDENTITY_REGION_DB", "other.mmdb", func(c *Config) any { return c.Identity.RegionDB }},
		{"HEADGATE_IDENTITY_JWT_KEYS", "other.json", func(c *Config) any { return c.Identity.JWT.Keys }},
		{"HEADGATE_IDENTITY_JWT_ISSUER", "https://b", func(c *Config) any { return c.Identity.JWT.Issuer }},
		{"HEADGATE_IDENTITY_JWT_AUDIENCE", "b", func(c *Config) any { return c.Identity.JWT.Audience }},
		{"HEADGATE_IDENTITY_JWT_LEEWAY", "9s", func(c *Config) any { return c.Identity.JWT.Leeway.String() }},
		{"HEADGATE_LOG_LEVEL", "WARN", nil},
		{"HEADGATE_LOG_LEVEL", "warn", func(c *Config) any { return strings.ToLower(c.Log.Level.String()) }},
		{"HEADGATE_LOG_DECISIONS", "all", func(c *Config) any { return string(c.Log.Decisions) }},
		{"HEADGATE_LOG_KEYS", "secret", nil},
		{"HEADGATE_LOG_KEYS", "hash", func(c *Config) any { return string(c.Log.Keys) }},
		{"HEADGATE_LOG_KEYS_SECRET_FILE", "other.key", nil}, // log.keys plain uses no secret.
		{"HEADGATE_LOG_FORMAT", "text", func(c *Config) any { return string(c.Log.Format) }},
		{"HEADGATE_LOG_ACCESS", "json", func(c *Config) any { return string(c.Log.Access) }},
		{"HEADGATE_LOG_IDENTITY", "header:A,jwt:sub", nil}, // A combined access log has no such fields.
		{"HEADGATE_LOG_IDENTITY_PLAIN", "header:B", nil},
		{"HEADGATE_LOG_ACCESS_FILE", "other.log", func(c *Config) any { return c.Log.AccessFile }},
		{"HEADGATE_PROXY_TLS_CERT", "other.crt", func(c *Config) any { return c.Proxy.TLS.Cert }},
		{"HEADGATE_ADMIN_PEERS", "10.0.0.5:9902,https://b.example:9902", func(c *Config) any { return strings.Join(c.Admin.Peers, ",") }},
		{"HEADGATE_ADMIN_PEERS_TOKEN_FILE", "other", func(c *Config) any { return c.Admin.PeersTokenFile }},
		{"HEADGATE_ADMIN_PEERS_CA", "other", func(c *Config) any { return c.Admin.PeersCA }},
		{"HEADGATE_ADMIN_TLS_CERT", "other.crt", func(c *Config) any { return c.Admin.TLS.Cert }},
		{"HEADGATE_ADMIN_TLS_KEY", "other.key", func(c *Config) any { return c.Admin.TLS.Key }},
		{"HEADGATE_PROXY_TLS_KEY", "other.key", func(c *Config) any { return c.Proxy.TLS.Key }},
		{"HEADGATE_PROXY_TLS_CLIENT_CA", "other.crt", func(c *Config) any { return c.Proxy.TLS.ClientCA }},
		{"HEADGATE_PROXY_TLS_CLIENT_NAME", "other.example", func(c *Config) any { return c.Proxy.TLS.ClientName }},
		{"HEADGATE_PROXY_TLS_CLIENT_AUTH", "request", func(c *Config) any { return string(c.Proxy.TLS.ClientAuth) }},
		{"HEADGATE_PROXY_UPSTREAM_TLS_CA", "other.crt", func(c *Config) any { return c.Proxy.UpstreamTLS.CA }},
		{"HEADGATE_PROXY_UPSTREAM_TLS_CERT", "other.crt", func(c *Config) any { return c.Proxy.UpstreamTLS.Cert }},
		{"HEADGATE_PROXY_UPSTREAM_TLS_KEY", "other.key", func(c *Config) any { return c.Proxy.UpstreamTLS.Key }},
		{"HEADGATE_PROXY_UPSTREAM_TLS_SERVER_NAME", "b.example", func(c *Config) any { return c.Proxy.UpstreamTLS.ServerName }},
		{"HEADGATE_PROXY_PROXY_PROTOCOL", "10.0.0.0/8,unix", func(c *Config) any {
			return strings.Trim(fmt.Sprint(c.Proxy.ProxyProtocol), "[]") + map[bool]string{true: ",unix"}[c.Proxy.ProxyProtocolUnix]
		}},
		{"HEADGATE_PROXY_BODY_IDLE_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.BodyIdleTimeout.String() }},
		{"HEADGATE_PROXY_MAX_HEADER", "9KiB", func(c *Config) any { return field.FormatSize(c.Proxy.MaxHeader) }},
		{"HEADGATE_PROXY_MAX_CONNECTIONS", "9", func(c *Config) any { return fmt.Sprint(c.Proxy.MaxConnections) }},
		{"HEADGATE_PROXY_MAX_CONNECTIONS_PER_ADDRESS", "9", func(c *Config) any { return fmt.Sprint(c.Proxy.MaxConnectionsPerAddress) }},
		{"HEADGATE_PROXY_MAX_REQUESTS", "9", func(c *Config) any { return fmt.Sprint(c.Proxy.MaxRequests) }},
		{"HEADGATE_PROXY_MAX_TRAFFIC_MEMORY", "65MiB", func(c *Config) any { return field.FormatSize(c.Proxy.MaxTrafficMemory) }},
		{"HEADGATE_PROXY_REQUEST_ID", "X-B-Id", func(c *Config) any { return c.Proxy.RequestID }},
		{"HEADGATE_CORS_ORIGINS", "https://b.example,https://c.example", func(c *Config) any { return strings.Join(c.CORS.Config().Origins, ",") }},
		{"HEADGATE_CORS_CREDENTIALS", "true", func(c *Config) any { return fmt.Sprint(c.CORS.Config().Credentials) }},
		{"HEADGATE_CORS_PREFLIGHTS", "count", func(c *Config) any { return map[bool]string{true: "count"}[c.CORS.Config().CountPreflights] }},
		{"HEADGATE_PROXY_LISTEN", ":9", func(c *Config) any { return c.Proxy.Listen }},
		{"HEADGATE_PROXY_UPSTREAM", "https://b:9", func(c *Config) any { return c.Proxy.Upstream.String() }},
		{"HEADGATE_PROXY_READ_HEADER_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.ReadHeaderTimeout.String() }},
		{"HEADGATE_PROXY_IDLE_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.IdleTimeout.String() }},
		{"HEADGATE_PROXY_UPSTREAM_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.UpstreamTimeout.String() }},
		{"HEADGATE_PROXY_HEADER_STYLE", "x-ratelimit", func(c *Config) any { return string(c.Proxy.HeaderStyle) }},
		{"HEADGATE_PROXY_DATA_PLANE", "fast", func(c *Config) any { return string(c.Proxy.DataPlane) }},
		{"HEADGATE_FAIR_SHARE_CLIENT", "header:X-B", func(c *Config) any { return c.FairShare.Client.String() }},
		{"HEADGATE_FAIR_SHARE_ANONYMOUS", "strangers", func(c *Config) any { return c.FairShare.Anonymous }},
		{"HEADGATE_FAIR_SHARE_CAPACITY", "99", func(c *Config) any { return fmt.Sprint(c.FairShare.Capacity) }},
		{"HEADGATE_FAIR_SHARE_CAPACITY", "99/s", nil},
		{"HEADGATE_FAIR_SHARE_CYCLE", "9s", func(c *Config) any { return c.FairShare.Cycle.String() }},
		{"HEADGATE_FAIR_SHARE_RESERVATION", "9%", func(c *Config) any { return fmt.Sprintf("%d%%", c.FairShare.Reservation) }},
		{"HEADGATE_FAIR_SHARE_DIVISION", "max_min", func(c *Config) any { return c.FairShare.Division.String() }},
		{"HEADGATE_FAIR_SHARE_RECLAIM", "next_cycle", func(c *Config) any { return c.FairShare.Reclaim.String() }},
		{"HEADGATE_FAIR_SHARE_NEW_CLIENTS_PER_CYCLE", "9", func(c *Config) any { return fmt.Sprint(c.FairShare.NewClientsPerCycle) }},
		{"HEADGATE_FAIR_SHARE_FORGET_AFTER", "9", func(c *Config) any { return fmt.Sprint(c.FairShare.ForgetAfter) }},
		{"HEADGATE_FAIR_SHARE_MAX_CLIENTS", "9", func(c *Config) any { return fmt.Sprint(c.FairShare.MaxClients) }},
		{"HEADGATE_FAIR_SHARE_COST", "header:X-B", func(c *Config) any { return "header:" + c.FairShare.CostHeader }},
		{"HEADGATE_FAIR_SHARE_MAX_COST", "9", func(c *Config) any { return fmt.Sprint(c.FairShare.MaxCost) }},
		{"HEADGATE_FAIR_SHARE_COUNT_ONCE", "header:X-B", func(c *Config) any { return "header:" + c.FairShare.IDHeader }},
		{"HEADGATE_FAIR_SHARE_TRUSTED_NAMES", "true", func(c *Config) any { return fmt.Sprint(c.FairShare.TrustNames) }},
		{"HEADGATE_FAIR_SHARE_MATCH_PATH", "/a/*", func(c *Config) any { return c.FairShare.Match.Path }},
		{"HEADGATE_FAIR_SHARE_MATCH_METHODS", "PUT", func(c *Config) any { return strings.Join(c.FairShare.Match.Methods, ",") }},
		{"HEADGATE_FAIR_SHARE_MATCH_HOSTS", "b.example", func(c *Config) any { return strings.Join(c.FairShare.Match.Hosts, ",") }},
		{"HEADGATE_FAIR_SHARE_MATCH_ADDRESSES", "10.0.0.0/8", func(c *Config) any { return strings.Trim(fmt.Sprint(c.FairShare.Match.Addresses), "[]") }},
		{"HEADGATE_FAIR_SHARE_MATCH_NETWORKS_FILE", "partners.txt", func(c *Config) any { return map[bool]string{true: "partners.txt"}[c.unreadNetworks] }},
		{"HEADGATE_FAIR_SHARE_MATCH_DOMAIN", "shop", func(c *Config) any { return c.FairShare.Match.Domain }},
		{"HEADGATE_FAIR_SHARE_EXEMPT_PATHS", "/healthz", func(c *Config) any { return strings.Join(c.FairShare.Exempt.Paths, ",") }},
		{"HEADGATE_FAIR_SHARE_EXEMPT_METHODS", "PUT", func(c *Config) any { return strings.Join(c.FairShare.Exempt.Methods, ",") }},
		{"HEADGATE_FAIR_SHARE_EXEMPT_ADDRESSES", "10.9.0.0/16", func(c *Config) any { return strings.Trim(fmt.Sprint(c.FairShare.Exempt.Addresses), "[]") }},
		{"HEADGATE_FAIR_SHARE_MODE", "shadow", func(c *Config) any { return c.FairShare.Mode.String() }},
		{"HEADGATE_METERING_JOURNAL", "other", func(c *Config) any { return c.Metering.Journal }},
		{"HEADGATE_METERING_MAX_SIZE", "9MiB", func(c *Config) any { return field.FormatSize(c.Metering.MaxSize) }},
		{"HEADGATE_METERING_SYNC", "record", func(c *Config) any { return c.Metering.Sync.String() }},
		{"HEADGATE_METERING_INSTANCE", "b-2", func(c *Config) any { return c.Metering.Instance }},
		{"HEADGATE_METERING_EVERY", "9s", func(c *Config) any { return c.Metering.Every.String() }},
		{"HEADGATE_METERING_MAX_CUSTOMERS", "9", func(c *Config) any { return fmt.Sprint(c.Metering.MaxCustomers) }},
		{"HEADGATE_METERING_EVENTS_URL", "https://b/c", func(c *Config) any { return c.Metering.Events.URL }},
		{"HEADGATE_METERING_EVENTS_TOKEN_FILE", "other", func(c *Config) any { return c.Metering.Events.TokenFile }},
		{"HEADGATE_METERING_EVENTS_CA", "other", func(c *Config) any { return c.Metering.Events.CA }},
		{"HEADGATE_METERING_EVENTS_MAX_EVENTS", "9", func(c *Config) any { return fmt.Sprint(c.Metering.Events.MaxEvents) }},
		{"HEADGATE_METERING_EVENTS_MAX_SIZE", "9KiB", func(c *Config) any { return field.FormatSize(c.Metering.Events.MaxSize) }},
		{"HEADGATE_METERING_EVENTS_TIMEOUT", "9s", func(c *Config) any { return c.Metering.Events.Timeout.String() }},
		{"HEADGATE_METERING_LINES_FOLDER", "other", func(c *Config) any { return c.Metering.Lines.Folder }},
		{"HEADGATE_METERING_LINES_MAX_SIZE", "9KiB", func(c *Config) any { return field.FormatSize(c.Metering.Lines.MaxSize) }},
		{"HEADGATE_METERING_LINES_MAX_AGE", "9s", func(c *Config) any { return c.Metering.Lines.MaxAge.String() }},
		{"HEADGATE_METERING_LINES_KEEP", "9", func(c *Config) any { return fmt.Sprint(c.Metering.Lines.Keep) }},
		{"HEADGATE_THROTTLE_MODE", "shadow", func(c *Config) any { return c.Throttle.Mode.String() }},
		{"HEADGATE_THROTTLE_CONCURRENCY", "9", func(c *Config) any { return fmt.Sprint(c.Throttle.Concurrency) }},
		{"HEADGATE_THROTTLE_DEADLINE", "9s", func(c *Config) any { return c.Throttle.Deadline.String() }},
		{"HEADGATE_THROTTLE_MAX_DEADLINE", "99s", func(c *Config) any { return fmt.Sprintf("%gs", c.Throttle.MaxDeadline.Seconds()) }},
		{"HEADGATE_THROTTLE_TENANT", "header:X-B", func(c *Config) any { return c.Throttle.Tenant.String() }},
		{"HEADGATE_THROTTLE_CRITICALITY", "critical", func(c *Config) any { return c.Throttle.Class.String() }},
		{"HEADGATE_THROTTLE_WORK", "service_time", func(c *Config) any {
			return map[bool]string{true: "service_time"}[c.Throttle.ServiceTime]
		}},
		{"HEADGATE_THROTTLE_STREAMS", "count", func(c *Config) any { return map[bool]string{true: "count"}[c.Throttle.CountStreams] }},
		{"HEADGATE_THROTTLE_QUEUE_PART_OF_DEADLINE", "9%", func(c *Config) any { return fmt.Sprintf("%v%%", 100*c.Throttle.PartOfDeadline) }},
		{"HEADGATE_THROTTLE_QUEUE_MAX_WAITERS", "9", func(c *Config) any { return fmt.Sprint(c.Throttle.MaxWaiters) }},
		{"HEADGATE_THROTTLE_MAX_TENANTS", "9", func(c *Config) any { return fmt.Sprint(c.Throttle.MaxTenants) }},
		{"HEADGATE_THROTTLE_AUTO_CONCURRENCY_MODE", "off", func(c *Config) any {
			return map[bool]string{true: "off"}[c.Throttle.Search.Max == 0]
		}},
		{"HEADGATE_THROTTLE_AUTO_CONCURRENCY_MIN", "2", func(c *Config) any { return fmt.Sprint(c.Throttle.Search.Min) }},
		{"HEADGATE_THROTTLE_AUTO_CONCURRENCY_MAX", "7", func(c *Config) any { return fmt.Sprint(c.Throttle.Search.Max) }},
		{"HEADGATE_THROTTLE_CPU_IN_FLIGHT", "9ms", nil}, // concurrency is set in the file.
		{"HEADGATE_ADMIN_LISTEN", "127.0.0.1:9", func(c *Config) any { return c.Admin.Listen }},
		{"HEADGATE_ADMIN_HEALTH", "127.0.0.1:9", func(c *Config) any { return c.Admin.Health }},
		{"HEADGATE_ADMIN_CONSOLE", "off", func(c *Config) any { return map[bool]string{true: "off"}[c.Admin.Console.Off] }},
		{"HEADGATE_ADMIN_CONSOLE_ACTIONS", "true", func(c *Config) any { return fmt.Sprint(c.Admin.Console.Acts(0)) }},
		{"HEADGATE_ADMIN_HOSTS", "a.example,b.example", func(c *Config) any { return strings.Join(c.Admin.Hosts, ",") }},
		{"HEADGATE_ADMIN_HISTORY_SERIES", "9", func(c *Config) any { return fmt.Sprint(c.Admin.HistorySeries) }},
		{"HEADGATE_PATHS_IGNORE_CASE", "true", func(c *Config) any { return fmt.Sprint(c.Folds.Case) }},
		{"HEADGATE_PATHS_IGNORE_TRAILING_SLASH", "true", func(c *Config) any { return fmt.Sprint(c.Folds.TrailingSlash) }},
		{"HEADGATE_ENVOY_MONTH", "calendar", func(c *Config) any {
			return map[bool]string{true: "calendar", false: "30d"}[c.EnvoyCalendarMonths]
		}},
		{"HEADGATE_PATHS_IGNORE_PARAMETERS", "true", func(c *Config) any { return fmt.Sprint(c.Folds.Parameters) }},
	} {
		tested[row.variable] = true
		t.Run(row.variable+"="+row.text, func(t *testing.T) {
			testVariable(t, file, variableRow{variable: row.variable, text: row.text, got: row.got})
		})
	}
	for _, row := range slices.Concat(sharedVariables(), serverVariables()) {
		tested[row.variable] = true
	}
	schema, _ := schemaOf(t)
	eachField(schema, "", func(_ string, field map[string]any) {
		text, _ := field["description"].(string)
		if _, variable, ok := strings.Cut(strings.TrimSuffix(text, "."), "Variable: "); ok && !tested[variable] {
			t.Errorf("no row tests the variable %s", variable)
		}
	})
}

// TestEnvironmentOfSharedStores is TestEnvironment for the settings of shared stores.
func TestEnvironmentOfSharedStores(t *testing.T) {
	for _, row := range sharedVariables() {
		t.Run(row.variable+"="+row.text, func(t *testing.T) {
			testVariable(t, "version: 1\nrules: []\n"+row.file, row)
		})
	}
}

// variableRow is a variable, its text, and a function that returns the value that it must change.
type variableRow struct {
	variable, text string
	got            func(*Config) any
	file           string
}

func sharedVariables() []variableRow {
	const (
		redis    = "store: rediss://h\nstore_password_file: p\nstore_tls: {ca: a, cert: c, key: k, server_name: n}\ndeny_cache: 2s\n"
		cluster  = "store: redis+cluster://h\nredis_slots: 1\nbreaker: {failures: 1, probe: 1ms, max_probe: 1s}\nprefetch: {batch: 3, hold: 1ms}\n"
		second   = "store: redis://h\nstore_per_second: redis://app@g\nstore_per_second_password_file: p\n"
		counters = "store: memcached://h\nmemcached_counters: false\n"
		inline   = "store: redis+sentinel://h/m\nstore_sentinel_user: u\nstore_sentinel_password: p\n"
		sentinel = "store: redis+sentinel://h/m\nstore_sentinel_password_file: s\nfallback: local\nlocal_share: 7%\n"
	)
	return []variableRow{
		{"HEADGATE_STORE", "redis+cluster://a:6379,b:6379", func(c *Config) any { return c.Shared.String() }, cluster},
		{"HEADGATE_STORE_PASSWORD_FILE", "other", func(c *Config) any { return c.Shared.PasswordFile }, redis},
		{"HEADGATE_STORE_SENTINEL_PASSWORD_FILE", "other", func(c *Config) any { return c.Shared.SentinelPasswordFile }, sentinel},
		{"HEADGATE_STORE_PER_SECOND", "redis://app@b:6379", func(c *Config) any { return c.Shared.PerSecond.String() }, second},
		{"HEADGATE_STORE_PER_SECOND_PASSWORD_FILE", "other", func(c *Config) any { return c.Shared.PerSecond.PasswordFile }, second},
		{"HEADGATE_STORE_TLS_CA", "other", func(c *Config) any { return c.Shared.Files.CA }, redis},
		{"HEADGATE_STORE_TLS_CERT", "other", func(c *Config) any { return c.Shared.Files.Cert }, redis},
		{"HEADGATE_STORE_TLS_KEY", "other", func(c *Config) any { return c.Shared.Files.Key }, redis},
		{"HEADGATE_STORE_SENTINEL_USER", "other", func(c *Config) any { return c.Shared.SentinelUser }, inline},
		{"HEADGATE_STORE_SENTINEL_PASSWORD", "other", func(c *Config) any { return c.Shared.SentinelPassword.Reveal() }, inline},
		{
			"HEADGATE_STORE_TLS_SKIP_HOSTNAME_VERIFICATION", "true", func(c *Config) any { return fmt.Sprint(c.Shared.Files.SkipName) },
			"store: rediss://h\nstore_tls: {skip_hostname_verification: false}\n",
		},
		{"HEADGATE_STORE_TLS_SERVER_NAME", "other.example", func(c *Config) any { return c.Shared.Files.ServerName }, redis},
		{"HEADGATE_REDIS_SLOTS", "9", func(c *Config) any { return fmt.Sprint(c.Shared.Slots) }, cluster},
		{"HEADGATE_REDIS_DIAL_TIMEOUT", "9s", func(c *Config) any { return c.Shared.DialTimeout.String() }, redis},
		{"HEADGATE_MEMCACHED_COUNTERS", "true", func(c *Config) any { return fmt.Sprint(c.Shared.Counters) }, counters},
		{
			"HEADGATE_MEMCACHED_SRV_REFRESH", "9s", func(c *Config) any { return c.Shared.Refresh.String() },
			"store: memcached+srv://h\nmemcached_srv_refresh: 5s\n",
		},
		{"HEADGATE_DENY_CACHE", "9s", func(c *Config) any { return c.Shared.DenyCache.String() }, redis},
		{"HEADGATE_BREAKER_FAILURES", "9", func(c *Config) any { return fmt.Sprint(c.Shared.Breaker.Failures) }, cluster},
		{"HEADGATE_BREAKER_PROBE", "9ms", func(c *Config) any { return c.Shared.Breaker.Probe.String() }, cluster},
		{"HEADGATE_BREAKER_MAX_PROBE", "9s", func(c *Config) any { return c.Shared.Breaker.MaxProbe.String() }, cluster},
		{"HEADGATE_PREFETCH", "off", func(c *Config) any { return c.Prefetch.String() }, redis + "prefetch: auto\n"},
		{"HEADGATE_PREFETCH", "9", func(c *Config) any { return c.Prefetch.String() }, cluster},
		{"HEADGATE_PREFETCH_BATCH", "9", func(c *Config) any { return c.Prefetch.String() }, cluster},
		{"HEADGATE_PREFETCH_BATCH", "9", func(c *Config) any { return c.Prefetch.String() }, redis},
		{"HEADGATE_PREFETCH_HOLD", "9ms", func(c *Config) any { return c.Prefetch.Hold.String() }, cluster},
		{"HEADGATE_PREFETCH_HOLD", "9ms", func(c *Config) any { return c.Prefetch.Hold.String() }, redis + "prefetch: auto\n"},
		{"HEADGATE_LOCAL_SHARE", "9%", func(c *Config) any { return fmt.Sprintf("%d%%", c.LocalShare) }, sentinel},
	}
}

// testVariable sets the variable of a row and checks the value. It also checks that an empty
// variable counts as unset, because container files turn unset variables into empty ones.
func testVariable(t *testing.T, file string, row variableRow) {
	t.Helper()
	lookup := func(name string) (string, bool) { return row.text, name == row.variable }
	c, err := parse("headgate.yaml", []byte(file), lookup)
	if row.got == nil {
		if err == nil {
			t.Error("the variable is accepted, want a fault")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := row.got(c); got != row.text {
		t.Errorf("got %v", got)
	}
	unset := func(name string) (string, bool) { return "", name == row.variable }
	if c, err = parse("headgate.yaml", []byte(file), unset); err != nil {
		t.Fatal(err)
	}
	if got := row.got(c); row.text != memoryWord && got == row.text {
		t.Errorf("with an empty variable: got error %v, want none", got)
	}
}

// TestVariablesAddToAPrefetch: a variable for a field of prefetch adds to the word in the file.
// With the word off, the variable is a fault.
func TestVariablesAddToAPrefetch(t *testing.T) {
	lookup := func(name string) (string, bool) { return "5ms", name == "HEADGATE_PREFETCH_HOLD" }
	_, err := parse("headgate.yaml", []byte("version: 1\nstore: redis://h\nprefetch: off\nrules: []\n"), lookup)
	const off = "HEADGATE_PREFETCH_HOLD: prefetch.hold: has no effect with prefetch off: remove it, or write prefetch: auto"
	if err == nil || err.Error() != off {
		t.Errorf("got\n%v\nwant\n%s", err, off)
	}
	_, err = parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
	const memory = "HEADGATE_PREFETCH_HOLD: prefetch.hold: has no effect with store memory, which answers at once: write off, remove it, or use a shared store"
	if err == nil || err.Error() != memory {
		t.Errorf("got\n%v\nwant\n%s", err, memory)
	}
}

// TestEnvironmentTakesLists sets a list with spaces around the commas, and replaces an invalid
// list in the file.
func TestEnvironmentTakesLists(t *testing.T) {
	lookup := func(name string) (string, bool) {
		return " X-Real-Ip ,\tX-Other-Ip", name == "HEADGATE_IDENTITY_USER_IP_HEADERS"
	}
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\nidentity: {trusted_proxies: [unix], user_ip_headers: 5}\n"), lookup)
	if err != nil || strings.Join(c.Identity.UserIPHeaders, " ") != "X-Real-Ip X-Other-Ip" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestEnvironmentReplacesAFaultyValue(t *testing.T) {
	lookup := func(name string) (string, bool) { return "http://a", name == "HEADGATE_PROXY_UPSTREAM" }
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\nproxy: {upstream: nonsense}\n"), lookup)
	if err != nil || c.Proxy.Upstream.Host != "a" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestEnvironmentAloneMakesAProxy(t *testing.T) {
	lookup := func(name string) (string, bool) { return "http://a", name == "HEADGATE_PROXY_UPSTREAM" }
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
	if err != nil || c.Proxy.Upstream.Host != "a" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestEnvironmentAloneDividesShares: variables alone can set up fair share. Two are required.
func TestEnvironmentAloneDividesShares(t *testing.T) {
	variables := map[string]string{
		"HEADGATE_FAIR_SHARE_CLIENT": "mtls_subject", "HEADGATE_FAIR_SHARE_CAPACITY": "40",
	}
	lookup := func(name string) (string, bool) { return variables[name], variables[name] != "" }
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
	if err != nil || c.FairShare == nil || c.FairShare.Capacity != 40 {
		t.Fatalf("got %+v, %v", c, err)
	}
	delete(variables, "HEADGATE_FAIR_SHARE_CLIENT")
	_, err = parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
	const want = "headgate.yaml: fair_share.client: is missing: write what identifies a client, like client: header:X-Client-Id"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestFaultsOfTheEnvironment checks that faults name the variable, and repeat no address that may
// contain a password.
func TestFaultsOfTheEnvironment(t *testing.T) {
	for _, row := range []struct{ variable, text, want string }{
		{"HEADGATE_FALLBACK", "alow", `HEADGATE_FALLBACK: fallback: "alow" is not known: did you mean allow?`},
		{"HEADGATE_MAX_MEMORY", "1GB", `HEADGATE_MAX_MEMORY: max_memory: size "1GB" has the unknown unit "GB": write it like 256MiB; the units are B, KiB, MiB, GiB and TiB`},
		{"HEADGATE_SHUTDOWN_TIMEOUT", "10", `HEADGATE_SHUTDOWN_TIMEOUT: shutdown_timeout: duration "10" has no unit after "10": duration must be like 2s, 10m, 1h or 1d`},
		{"HEADGATE_ADMIN_LISTEN", ":9902", `HEADGATE_ADMIN_LISTEN: admin.listen: address ":9902" has no host, so it would be open to every network: write 127.0.0.1:9902, or 0.0.0.0:9902 for every network`},
		{"HEADGATE_ADMIN_HEALTH", "127.0.0.1:9902", `HEADGATE_ADMIN_HEALTH: admin.health: address "127.0.0.1:9902" is already used by admin.listen (127.0.0.1:9902): use another port`},
		{"HEADGATE_STORE", "redis://u:secret@h:99999", `HEADGATE_STORE: store: has a port that is not in 1 to 65535: write it like redis://127.0.0.1:6379/0`},
		{"HEADGATE_STORE", "redis://secret@h", `HEADGATE_STORE: store: has a user without a password: write user:password@, or :password@ for the default user, or set store_password_file; for a user with nopass, write any password, like user:none@`},
		{"HEADGATE_STORE", "u:secret@h", `HEADGATE_STORE: store: the store is unknown: use memory, or an address of redis, rediss, redis+cluster, redis+sentinel, redis+unix or memcached, like redis://127.0.0.1:6379/0`},
		{"HEADGATE_STORE_TLS_CA", "ca.crt", `HEADGATE_STORE_TLS_CA: store_tls.ca: has no effect with store memory: remove it, or use a shared store, like redis://127.0.0.1:6379/0`},
		{"HEADGATE_BREAKER_PROBE", "5s", `HEADGATE_BREAKER_PROBE: breaker.probe: probe of 5s is above max_probe of 2s: raise max_probe to at least that of probe
HEADGATE_BREAKER_PROBE: breaker.probe: has no effect with store memory: remove it, or use a shared store, like redis://127.0.0.1:6379/0`},
		{"HEADGATE_FALLBACK", "local", `HEADGATE_FALLBACK: fallback: local has no effect with store memory, which is local already: use allow or deny, or a shared store`},
		{"HEADGATE_LOCAL_SHARE", "25%", `HEADGATE_LOCAL_SHARE: local_share: has no effect without fallback local: remove it, or write fallback: local`},
		{"HEADGATE_ADMIN_CONSOLE", "onn", `HEADGATE_ADMIN_CONSOLE: admin.console: "onn" is not known: did you mean on?`},
		{"HEADGATE_PREFETCH", "atuo", `HEADGATE_PREFETCH: prefetch: "atuo" is not known: write off, auto, or how many units are taken at once, like 100`},
		{"HEADGATE_PROXY_UPSTREAM", "http://u:secret@h", `HEADGATE_PROXY_UPSTREAM: proxy.upstream: contains a user or a password: remove it, and let the client send Authorization`},
		{"HEADGATE_IDENTITY_JWT_ISSUER", "https://a", `headgate.yaml: identity.jwt.keys: is missing: name a file of public keys, like keys: jwks.json`},
		{"HEADGATE_IDENTITY_JWT_LEEWAY", "1h", `HEADGATE_IDENTITY_JWT_LEEWAY: identity.jwt.leeway: "1h" is out of range: use 0s to 10m
headgate.yaml: identity.jwt.keys: is missing: name a file of public keys, like keys: jwks.json`},
		{"HEADGATE_IDENTITY_TRUSTED_PROXIES", "10.0.0.0/8, 10.0.0.7/8", `HEADGATE_IDENTITY_TRUSTED_PROXIES: identity.trusted_proxies[1]: "10.0.0.7/8" has bits beyond its /8: write 10.0.0.0/8, or 10.0.0.7 for one address`},
		{"HEADGATE_IDENTITY_TRUSTED_PROXIES", "unix,,unix,", `HEADGATE_IDENTITY_TRUSTED_PROXIES: identity.trusted_proxies[1]: is empty: write one comma between entries, and none at the end
HEADGATE_IDENTITY_TRUSTED_PROXIES: identity.trusted_proxies[3]: is empty: write one comma between entries, and none at the end
HEADGATE_IDENTITY_TRUSTED_PROXIES: identity.trusted_proxies[2]: unix appears twice: remove one of them`},
		{"HEADGATE_IDENTITY_TRUSTED_PROXIES", "0.0.0.0/0", `HEADGATE_IDENTITY_TRUSTED_PROXIES: identity.trusted_proxies[0]: "0.0.0.0/0" contains every address, so that every client could forge its address: write only the networks of the proxies`},
		{"HEADGATE_IDENTITY_USER_IP_HEADERS", "a,b,c,d,e,f,g,h,i", `HEADGATE_IDENTITY_USER_IP_HEADERS: identity.user_ip_headers: has 9 entries: use at most 8
HEADGATE_IDENTITY_USER_IP_HEADERS: identity.user_ip_headers: no proxy is trusted to set these headers: set identity.trusted_proxies to the networks of the proxies that set them`},
		{"HEADGATE_IDENTITY_USER_IP_HEADERS", "X-Real-Ip", `HEADGATE_IDENTITY_USER_IP_HEADERS: identity.user_ip_headers: no proxy is trusted to set these headers: set identity.trusted_proxies to the networks of the proxies that set them`},
		{"HEADGATE_PROXY_PROXY_PROTOCOL", "balancer", `HEADGATE_PROXY_PROXY_PROTOCOL: proxy.proxy_protocol[0]: "balancer" is not an address or a network: write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1
headgate.yaml: proxy.upstream: is missing: write the address of the service, like upstream: http://127.0.0.1:9000`},
		{"HEADGATE_LOG_ACCESS_FILE", "access.log", `HEADGATE_LOG_ACCESS_FILE: log.access_file: has no effect without an access log: set log.access to json or combined`},
		{"HEADGATE_PROXY_TLS_CLIENT_CA", "ca.crt", `headgate.yaml: proxy.tls.cert: is missing: name the server's certificate and its key, or remove tls
headgate.yaml: proxy.upstream: is missing: write the address of the service, like upstream: http://127.0.0.1:9000`},
		{"HEADGATE_PROXY_TLS_CLIENT_AUTH", "request", `HEADGATE_PROXY_TLS_CLIENT_AUTH: proxy.tls.client_auth: has no effect without client_ca: set proxy.tls.client_ca
headgate.yaml: proxy.tls.cert: is missing: name the server's certificate and its key, or remove tls
headgate.yaml: proxy.upstream: is missing: write the address of the service, like upstream: http://127.0.0.1:9000`},
		{"HEADGATE_PROXY_TLS_CERT", "a.crt", `headgate.yaml: proxy.tls.key: is missing: name the certificate's key
headgate.yaml: proxy.upstream: is missing: write the address of the service, like upstream: http://127.0.0.1:9000`},
		{"HEADGATE_FAIR_SHARE_CYCLE", "10", `HEADGATE_FAIR_SHARE_CYCLE: fair_share.cycle: duration "10" has no unit after "10": duration must be like 2s, 10m, 1h or 1d
headgate.yaml: fair_share.client: is missing: write what identifies a client, like client: header:X-Client-Id
headgate.yaml: fair_share.capacity: is missing: write how many units the service can handle in a cycle, like capacity: 2000`},
		{"HEADGATE_PROXY_FAIR_SHARE_CAPACITY", "40", `HEADGATE_PROXY_FAIR_SHARE_CAPACITY: fair_share.capacity: has a new variable: set HEADGATE_FAIR_SHARE_CAPACITY instead`},
		{"HEADGATE_PROXY_FAIR_SHARE_MAX_COST", "4", `HEADGATE_PROXY_FAIR_SHARE_MAX_COST: fair_share.max_cost: has a new variable: set HEADGATE_FAIR_SHARE_MAX_COST instead`},
		{"HEADGATE_PROXY_FAIR_SHARE_EXEMPT_PATHS", "/a", `HEADGATE_PROXY_FAIR_SHARE_EXEMPT_PATHS: fair_share.exempt.paths: has a new variable: set HEADGATE_FAIR_SHARE_EXEMPT_PATHS instead`},
		{"HEADGATE_FAIR_SHARE_WEIGHTS", "a=2", `HEADGATE_FAIR_SHARE_WEIGHTS: fair_share.weights: cannot be set by a variable: write fair_share.weights in the file`},
		{"HEADGATE_PROXY_FAIR_SHARE_WEIGHTS", "a=2", `HEADGATE_PROXY_FAIR_SHARE_WEIGHTS: fair_share.weights: cannot be set by a variable: write fair_share.weights in the file`},
		{"HEADGATE_PROXY_FAIR_SHARE", "on", `HEADGATE_PROXY_FAIR_SHARE: fair_share: cannot be set by a variable: write fair_share in the file`},
		{"HEADGATE_PROXY_FAIR_SHARE_MATCH_HEADERS", "X-A=1", `HEADGATE_PROXY_FAIR_SHARE_MATCH_HEADERS: fair_share.match.headers: cannot be set by a variable: write fair_share.match.headers in the file`},
		{"HEADGATE_RULES", "[]", `HEADGATE_RULES: rules: cannot be set by a variable: write rules in the file`},
		{"HEADGATE_LOG", "debug", `HEADGATE_LOG: log: cannot be set by a variable: write log in the file`},
		{"HEADGATE_PROXY_LISTEN", ":8081", `headgate.yaml: proxy.upstream: is missing: write the address of the service, like upstream: http://127.0.0.1:9000`},
	} {
		lookup := func(name string) (string, bool) { return row.text, name == row.variable }
		_, err := parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
		if err == nil || err.Error() != row.want {
			t.Errorf("%s=%s gives\n%v\nwant\n%s", row.variable, row.text, err, row.want)
		}
	}
}

// TestUpstreamTLSOfTheEnvironment: a setting without effect is a fault of the variable that set it.
func TestUpstreamTLSOfTheEnvironment(t *testing.T) {
	lookup := func(name string) (string, bool) { return "ca.crt", name == "HEADGATE_PROXY_UPSTREAM_TLS_CA" }
	_, err := parse("headgate.yaml", []byte("version: 1\nrules: []\nproxy: {upstream: 'http://a'}\n"), lookup)
	const want = "HEADGATE_PROXY_UPSTREAM_TLS_CA: proxy.upstream_tls.ca: has no effect with an upstream of http: remove it, or write upstream with https"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
