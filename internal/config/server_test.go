package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
)

// serverVariables has a row for each variable of the server. Each differs from the file.
func serverVariables() []variableRow {
	const file = `store: "redis://127.0.0.1:1"
server:
  callers: [{name: a, certificate: a, scopes: [decide]}]
  callers_file: callers.yaml
  limits: {caller: 1/s, address: 1/s, connections: 1/s}
  grpc: {address: "127.0.0.1:1", auth: mtls, tls: {cert: c, key: k, client_ca: a, client_auth: require, client_name: a}, max_connections: 1,
    max_connections_per_address: 1, max_streams: 1, max_call_memory: 64MiB, handshake_timeout: 1s, idle_timeout: 1s, write_timeout: 1s,
    keepalive: 1s, keepalive_timeout: 1s, max_connection_age: 1s, max_connection_age_grace: 1s}
  http: {address: "127.0.0.1:2", auth: mtls, tls: {cert: c, key: k, client_ca: a, client_auth: require, client_name: a}, max_connections: 1,
    max_connections_per_address: 1, max_body: 1KiB, idle_timeout: 1s}
  resp: {address: "127.0.0.1:3", auth: mtls, tls: {cert: c, key: k, client_ca: a, client_auth: require, client_name: a}, max_connections: 1,
    max_connections_per_address: 1, idle_timeout: 1s}
  max_traffic_memory: 128MiB
  unhealthy_without_store: false
  rate_limit_service: {mode: enforce, quota_mode: false, stop_increment: false, response_headers: false, limit_header: A,
    remaining_header: B, reset_header: C, dynamic_metadata: false, near_limit: 70%, max_sent_limits: 5, max_metric_values: 5,
    local_cache: 1MiB}
`
	var rows []variableRow
	add := func(name, text string, got func(s *Server) any) {
		rows = append(rows, variableRow{"HEADGATE_SERVER_" + name, text, func(c *Config) any {
			if c.Server == nil {
				return nil
			}
			return got(c.Server)
		}, file})
	}
	for prefix, tls := range map[string]func(s *Server) *TLS{
		"GRPC": func(s *Server) *TLS { return &s.GRPC.TLS }, "HTTP": func(s *Server) *TLS { return &s.HTTP.TLS },
		"RESP": func(s *Server) *TLS { return &s.RESP.TLS },
	} {
		add(prefix+"_TLS_CERT", "other.crt", func(s *Server) any { return tls(s).Cert })
		add(prefix+"_TLS_KEY", "other.key", func(s *Server) any { return tls(s).Key })
		add(prefix+"_TLS_CLIENT_CA", "other.crt", func(s *Server) any { return tls(s).ClientCA })
		add(prefix+"_TLS_CLIENT_AUTH", "request", func(s *Server) any { return string(tls(s).ClientAuth) })
		add(prefix+"_TLS_CLIENT_NAME", "other.example", func(s *Server) any { return tls(s).ClientName })
	}
	for _, name := range []string{"GRPC", "GRPC_ADDRESS"} {
		add(name, "127.0.0.1:9", func(s *Server) any { return s.GRPC.Address })
	}
	for _, name := range []string{"HTTP", "HTTP_ADDRESS"} {
		add(name, "127.0.0.1:9", func(s *Server) any { return s.HTTP.Address })
	}
	for _, name := range []string{"RESP", "RESP_ADDRESS"} {
		add(name, "127.0.0.1:9", func(s *Server) any { return s.RESP.Address })
	}
	rows = append(rows, variableRow{"HEADGATE_ADMIN_AUTH", "token", func(c *Config) any { return c.Admin.Auth.String() }, file})
	add("GRPC_AUTH", "token,mtls", func(s *Server) any {
		return fmt.Sprint(map[Auth]string{AuthToken | AuthMTLS: "token,mtls"}[s.GRPC.Auth])
	})
	add("HTTP_AUTH", "token", func(s *Server) any { return s.HTTP.Auth.String() })
	add("RESP_AUTH", "none", func(s *Server) any { return s.RESP.Auth.String() })
	add("CALLERS_FILE", "other.yaml", func(s *Server) any { return s.CallersFile })
	add("LIMITS_CALLER", "9/s", func(s *Server) any { return fmt.Sprintf("%d/s", s.Limits.Caller.Count) })
	add("LIMITS_ADDRESS", "9/s", func(s *Server) any { return fmt.Sprintf("%d/s", s.Limits.Address.Count) })
	add("LIMITS_CONNECTIONS", "9/s", func(s *Server) any { return fmt.Sprintf("%d/s", s.Limits.Connections.Count) })
	add("RESP_MAX_CONNECTIONS", "9", func(s *Server) any { return fmt.Sprint(s.RESP.MaxConnections) })
	add("RESP_MAX_CONNECTIONS_PER_ADDRESS", "9", func(s *Server) any { return fmt.Sprint(s.RESP.MaxConnectionsPerAddress) })
	add("RESP_IDLE_TIMEOUT", "9s", func(s *Server) any { return s.RESP.IdleTimeout.String() })
	add("GRPC_MAX_CONNECTIONS", "9", func(s *Server) any { return fmt.Sprint(s.GRPC.MaxConnections) })
	add("GRPC_MAX_CONNECTIONS_PER_ADDRESS", "9", func(s *Server) any { return fmt.Sprint(s.GRPC.MaxConnectionsPerAddress) })
	add("GRPC_MAX_STREAMS", "9", func(s *Server) any { return fmt.Sprint(s.GRPC.MaxStreams) })
	add("GRPC_MAX_CALL_MEMORY", "65MiB", func(s *Server) any { return field.FormatSize(s.GRPC.MaxCallMemory) })
	add("GRPC_HANDSHAKE_TIMEOUT", "9s", func(s *Server) any { return s.GRPC.HandshakeTimeout.String() })
	add("GRPC_IDLE_TIMEOUT", "9s", func(s *Server) any { return s.GRPC.IdleTimeout.String() })
	add("GRPC_WRITE_TIMEOUT", "9s", func(s *Server) any { return s.GRPC.WriteTimeout.String() })
	add("GRPC_KEEPALIVE", "9s", func(s *Server) any { return s.GRPC.Keepalive.String() })
	add("GRPC_KEEPALIVE_TIMEOUT", "9s", func(s *Server) any { return s.GRPC.KeepaliveTimeout.String() })
	add("GRPC_MAX_CONNECTION_AGE", "9s", func(s *Server) any { return s.GRPC.MaxConnectionAge.String() })
	add("GRPC_MAX_CONNECTION_AGE_GRACE", "9s", func(s *Server) any { return s.GRPC.MaxConnectionAgeGrace.String() })
	add("HTTP_MAX_CONNECTIONS", "9", func(s *Server) any { return fmt.Sprint(s.HTTP.MaxConnections) })
	add("HTTP_MAX_CONNECTIONS_PER_ADDRESS", "9", func(s *Server) any { return fmt.Sprint(s.HTTP.MaxConnectionsPerAddress) })
	add("HTTP_MAX_BODY", "9KiB", func(s *Server) any { return field.FormatSize(s.HTTP.MaxBody) })
	add("HTTP_IDLE_TIMEOUT", "9s", func(s *Server) any { return s.HTTP.IdleTimeout.String() })
	add("MAX_TRAFFIC_MEMORY", "129MiB", func(s *Server) any { return field.FormatSize(s.MaxTrafficMemory) })
	add("UNHEALTHY_WITHOUT_STORE", "true", func(s *Server) any { return fmt.Sprint(s.UnhealthyWithoutStore) })
	rate := func(name, text string, got func(r *RateLimitService) any) {
		add("RATE_LIMIT_SERVICE_"+name, text, func(s *Server) any { return fmt.Sprint(got(&s.RateLimitService)) })
	}
	rate("MODE", "shadow", func(r *RateLimitService) any { return r.Mode })
	rate("QUOTA_MODE", "true", func(r *RateLimitService) any { return r.QuotaMode })
	rate("STOP_INCREMENT", "true", func(r *RateLimitService) any { return r.StopIncrement })
	rate("RESPONSE_HEADERS", "true", func(r *RateLimitService) any { return r.ResponseHeaders })
	rate("LIMIT_HEADER", "X-A", func(r *RateLimitService) any { return r.LimitHeader })
	rate("REMAINING_HEADER", "X-B", func(r *RateLimitService) any { return r.RemainingHeader })
	rate("RESET_HEADER", "X-C", func(r *RateLimitService) any { return r.ResetHeader })
	rate("DYNAMIC_METADATA", "true", func(r *RateLimitService) any { return r.DynamicMetadata })
	rate("NEAR_LIMIT", "9%", func(r *RateLimitService) any { return fmt.Sprint(r.NearLimit, "%") })
	rate("MAX_SENT_LIMITS", "9", func(r *RateLimitService) any { return r.MaxSentLimits })
	rate("MAX_METRIC_VALUES", "9", func(r *RateLimitService) any { return r.MaxMetricValues })
	rate("LOCAL_CACHE", "9KiB", func(r *RateLimitService) any { return field.FormatSize(r.LocalCache) })
	return rows
}

// TestEnvironmentOfTheServer is TestEnvironment for the settings of the server.
func TestEnvironmentOfTheServer(t *testing.T) {
	for _, row := range serverVariables() {
		t.Run(row.variable, func(t *testing.T) {
			testVariable(t, "version: 1\nrules: []\n"+row.file, row)
		})
	}
}

// TestServerIsOptional: a file without the section has no server. One variable alone makes one.
func TestServerIsOptional(t *testing.T) {
	const file = "version: 1\nrules: []\n"
	c, err := Parse("f", []byte(file))
	if err != nil || c.Server != nil || c.ServerMemoryBound() != 0 {
		t.Errorf("without the section: got %+v, %v", c.Server, err)
	}
	lookup := func(name string) (string, bool) { return "off", name == "HEADGATE_SERVER_HTTP" }
	c, err = parse("f", []byte(file), lookup)
	if err != nil || c.Server == nil || c.Server.HTTP.Address != "" || c.Server.GRPC.Address != "127.0.0.1:8081" {
		t.Errorf("with a variable: got %+v, %v", c.Server, err)
	}
	_, err = parse("f", []byte(file+"server: {grpc: off}\n"), lookup)
	if err == nil || !strings.Contains(err.Error(), "has no listener") {
		t.Errorf("without listeners: got %v", err)
	}
	// With the defaults of both commands, the proxy and the HTTP listener have one port. They
	// are different processes, and may run on different machines.
	if _, err = Parse("f", []byte(file+"server: {}\nproxy: {upstream: 'http://127.0.0.1:9000'}\n")); err != nil {
		t.Errorf("with proxy and server: got %v", err)
	}
}

// TestChangesOfTheServerNeedARestart: a changed address is reported, however it is written.
func TestChangesOfTheServerNeedARestart(t *testing.T) {
	for _, row := range []struct {
		before, after string
		want          []string
	}{
		{"server: {grpc: '127.0.0.1:1'}", "server: {grpc: {address: '127.0.0.1:1'}}", nil},
		{"server: {grpc: '127.0.0.1:1'}", "server: {grpc: {address: '127.0.0.1:2'}}", []string{"server.grpc.address"}},
		{"server: {grpc: '127.0.0.1:1'}", "server: {grpc: '127.0.0.1:2', http: off}", []string{"server.grpc.address", "server.http.address"}},
		{"server: {grpc: {max_streams: 5}}", "server: {grpc: {max_streams: 6}}", []string{"server.grpc.max_streams"}},
		{"server: {grpc: {tls: {cert: a, key: b}}}", "server: {grpc: {tls: {cert: a, key: c}}}", []string{"server.grpc.tls.key"}},
		{"server: {http: {max_body: 5KiB}}", "server: {http: {max_body: 6KiB}}", []string{"server.http.max_body"}},
		{"server: {}", "", []string{"server"}},
	} {
		parsed := func(text string) *Config {
			c, err := Parse("f", []byte("version: 1\nrules: []\n"+text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		if got := parsed(row.before).NeedsRestart(parsed(row.after)); !slices.Equal(got, row.want) {
			t.Errorf("%s to %s: got %q, want %q", row.before, row.after, got, row.want)
		}
	}
}
