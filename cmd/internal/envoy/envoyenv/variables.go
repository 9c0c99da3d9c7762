package envoyenv

import (
	"slices"
	"time"
)

// variables returns the declarations of all variables, in the order of their faults.
func variables() []variable {
	return slices.Concat(listeners(), limits(), xdsVariables(), decisions(), stats(), stores(), tracing())
}

func listeners() []variable {
	return []variable{
		text("HOST", "0.0.0.0", "address of the HTTP listener", func(s *Settings) *string { return &s.HTTP.Host }),
		port("PORT", "8080", "port of the HTTP listener", func(s *Settings) *int { return &s.HTTP.Port }),
		text("DEBUG_HOST", "0.0.0.0", "address of the debug listener", func(s *Settings) *string { return &s.Debug.Host }),
		port("DEBUG_PORT", "6070", "port of the debug listener", func(s *Settings) *int { return &s.Debug.Port }),
		text("GRPC_HOST", "0.0.0.0", "address of the gRPC listener", func(s *Settings) *string { return &s.GRPC.Host }),
		port("GRPC_PORT", "8081", "port of the gRPC listener", func(s *Settings) *int { return &s.GRPC.Port }),
		text("GRPC_UDS", "", "path of a unix socket for gRPC, in place of address and port",
			func(s *Settings) *string { return &s.GRPC.Socket }),
		duration("GRPC_MAX_CONNECTION_AGE", "24h", "age at which a connection is asked to end",
			func(s *Settings) *time.Duration { return &s.GRPC.MaxAge }),
		duration("GRPC_MAX_CONNECTION_AGE_GRACE", "1h", "time after which such a connection is closed",
			func(s *Settings) *time.Duration { return &s.GRPC.MaxAgeGrace }),
		without("GRPC_MAX_CONCURRENT_STREAMS", "0", "whole number", "streams of a connection; server.grpc.max_streams bounds them"),
		without("MAX_CONCURRENT_REQUESTS", "0", "whole number", "requests at once; server.grpc.max_call_memory bounds them"),
		without("REQUEST_TIMEOUT", "0", "duration", "time limit of a request; store_timeout bounds a decision"),
		flag("GRPC_SERVER_USE_TLS", "false", "encrypt gRPC", func(s *Settings) *bool { return &s.GRPC.UseTLS }),
		text("GRPC_SERVER_TLS_CERT", "", "certificate file of the gRPC listener",
			func(s *Settings) *string { return &s.GRPC.Files.Cert }),
		text("GRPC_SERVER_TLS_KEY", "", "key file of the gRPC listener", func(s *Settings) *string { return &s.GRPC.Files.Key }),
		text("GRPC_CLIENT_TLS_CACERT", "", "authorities file; with it, clients need a certificate",
			func(s *Settings) *string { return &s.GRPC.Files.CA }),
		text("GRPC_CLIENT_TLS_SAN", "", "DNS name that a client certificate must have",
			func(s *Settings) *string { return &s.GRPC.ClientName }),
		without("GRPC_SERVER_TLS_CA_CERT", "", "text", "set by Envoy Gateway; envoyproxy/ratelimit does not read it"),
		choice("LOG_LEVEL", "WARN", "least level of log lines",
			[]string{"trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"},
			func(s *Settings) *string { return &s.Log.Level }),
		newVariable("LOG_FORMAT", "text", "json, or any other for text", "form of log lines",
			func(s *Settings) *string { return &s.Log.Format }, logFormat),
	}
}

func limits() []variable {
	return []variable{
		newVariable("CONFIG_TYPE", "FILE", "one of FILE, GRPC_XDS_SOTW", "where the limits come from",
			func(s *Settings) *bool { return &s.Limits.UseXDS }, isXDS),
		flag("FORCE_START_WITHOUT_INITIAL_CONFIG", "false", "serve before the first configuration came",
			func(s *Settings) *bool { return &s.Limits.StartWithout }),
		flag("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "false", "be healthy only after a good configuration came",
			func(s *Settings) *bool { return &s.Limits.HealthyWithOne }),
		flag("MERGE_DOMAIN_CONFIG", "false", "merge the limits of one domain in several files",
			func(s *Settings) *bool { return &s.Limits.Merge }),
		text("RUNTIME_ROOT", "/srv/runtime_data/current", "folder of the limit files",
			func(s *Settings) *string { return &s.Limits.Folder.Root }),
		text("RUNTIME_SUBDIRECTORY", "", "folder below RUNTIME_ROOT", func(s *Settings) *string { return &s.Limits.Folder.Subdirectory }),
		text("RUNTIME_APPDIRECTORY", "config", "folder below RUNTIME_SUBDIRECTORY",
			func(s *Settings) *string { return &s.Limits.Folder.App }),
		flag("RUNTIME_WATCH_ROOT", "true", "reload when the link RUNTIME_ROOT is swapped, and not when a file changes",
			func(s *Settings) *bool { return &s.Limits.Folder.WatchRoot }),
		flag("RUNTIME_IGNOREDOTFILES", "false", "skip files that begin with a dot",
			func(s *Settings) *bool { return &s.Limits.Folder.IgnoreDotFiles }),
	}
}

func xdsVariables() []variable {
	return []variable{
		text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", "address of the xDS server",
			func(s *Settings) *string { return &s.Limits.XDS.Server }),
		text("CONFIG_GRPC_XDS_NODE_ID", "default", "name of this node", func(s *Settings) *string { return &s.Limits.XDS.NodeID }),
		mapping("CONFIG_GRPC_XDS_NODE_METADATA", "=", "metadata of this node",
			func(s *Settings) *map[string]string { return &s.Limits.XDS.NodeMetadata }),
		secretMapping("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "headers of the xDS stream", xdsHeaders),
		flag("CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", "encrypt the xDS stream",
			func(s *Settings) *bool { return &s.Limits.XDS.UseTLS }),
		text("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", "client certificate file",
			func(s *Settings) *string { return &s.Limits.XDS.Files.Cert }),
		text("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", "key file of the client certificate",
			func(s *Settings) *string { return &s.Limits.XDS.Files.Key }),
		text("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "", "authorities file for the server's certificate",
			func(s *Settings) *string { return &s.Limits.XDS.Files.CA }),
		text("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", "DNS name that the server's certificate must have",
			func(s *Settings) *string { return &s.Limits.XDS.ServerName }),
		without("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", "duration",
			"pause between connections; a lost stream is opened again within 2 s"),
		duration(backoffNames[0], "10s", "first pause before a lost stream is opened again",
			func(s *Settings) *time.Duration { return &s.Limits.XDS.Backoff.Initial }),
		duration(backoffNames[1], "60s", "longest pause", func(s *Settings) *time.Duration { return &s.Limits.XDS.Backoff.Max }),
		number(backoffNames[2], "0.5", "growth of the pause; below 1 it does not grow", 0, 100,
			func(s *Settings) *float64 { return &s.Limits.XDS.Backoff.Factor }),
		flag(backoffNames[3], "true", "vary the pause", func(s *Settings) *bool { return &s.Limits.XDS.Backoff.Jitter }),
		whole("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "0", "largest message of the xDS server", 1<<30,
			func(s *Settings) *int { return &s.Limits.XDS.MaxMessageBytes }),
	}
}

func decisions() []variable {
	return []variable{
		flag("SHADOW_MODE", "false", "answer OK to every request", func(s *Settings) *bool { return &s.Decisions.Shadow }),
		flag("QUOTA_MODE", "false", "treat every limit as one with quota_mode", func(s *Settings) *bool { return &s.Decisions.Quota }),
		number("NEAR_LIMIT_RATIO", "0.8", "part of a limit above which hits count as near", 0, 1,
			func(s *Settings) *float64 { return &s.Decisions.NearLimit }),
		text("CACHE_KEY_PREFIX", "", "begins every key in the store", func(s *Settings) *string { return &s.Decisions.KeyPrefix }),
		whole("LOCAL_CACHE_SIZE_IN_BYTES", "0", "memory for counters over their limits", 16<<30,
			func(s *Settings) *int { return &s.Decisions.CacheBytes }),
		flag("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false", "do not count a request that one of its limits refuses",
			func(s *Settings) *bool { return &s.Decisions.StopIncrement }),
		flag("RESPONSE_DYNAMIC_METADATA", "false", "put metadata into answers", func(s *Settings) *bool { return &s.Decisions.Metadata }),
		flag("LIMIT_RESPONSE_HEADERS_ENABLED", "false", "put headers into answers",
			func(s *Settings) *bool { return &s.Decisions.Headers }),
		text("LIMIT_LIMIT_HEADER", "RateLimit-Limit", "header of the limit",
			func(s *Settings) *string { return &s.Decisions.LimitHeader }),
		text("LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "header of the remaining requests",
			func(s *Settings) *string { return &s.Decisions.RemainingHeader }),
		text("LIMIT_RESET_HEADER", "RateLimit-Reset", "header of the seconds until the next period",
			func(s *Settings) *string { return &s.Decisions.ResetHeader }),
		without("EXPIRATION_JITTER_MAX_SECONDS", "300", "whole number", "spread of expiries in Redis"),
	}
}

func stats() []variable {
	return []variable{
		flag("DISABLE_STATS", "false", "count nothing", func(s *Settings) *bool { return &s.Stats.Disabled }),
		duration("STATS_FLUSH_INTERVAL", "10s", "interval between two reports",
			func(s *Settings) *time.Duration { return &s.Stats.FlushInterval }),
		mapping("EXTRA_TAGS", ":", "tags of every counter", func(s *Settings) *map[string]string { return &s.Stats.ExtraTags }),
		flag("USE_STATSD", "true", "report to statsd over TCP", func(s *Settings) *bool { return &s.Stats.UseStatsd }),
		text("STATSD_HOST", "localhost", "host of statsd or DogStatsD", func(s *Settings) *string { return &s.Stats.Statsd.Host }),
		port("STATSD_PORT", "8125", "port of statsd or DogStatsD", func(s *Settings) *int { return &s.Stats.Statsd.Port }),
		flag("USE_DOG_STATSD", "false", "report to DogStatsD over UDP", func(s *Settings) *bool { return &s.Stats.UseDogStatsd }),
		list("USE_DOG_STATSD_MOGRIFIERS", "names N of the variables DOG_STATSD_MOGRIFIER_N_*", mogrifierIDs),
		flag("USE_PROMETHEUS", "false", "serve counters to Prometheus", func(s *Settings) *bool { return &s.Stats.UsePrometheus }),
		text("PROMETHEUS_ADDR", ":9090", "address of the listener for Prometheus",
			func(s *Settings) *string { return &s.Stats.Prometheus.Address }),
		text("PROMETHEUS_PATH", "/metrics", "path of the metrics", func(s *Settings) *string { return &s.Stats.Prometheus.Path }),
		text("PROMETHEUS_MAPPER_YAML", "", "file that maps names to labels",
			func(s *Settings) *string { return &s.Stats.Prometheus.Mapper }),
		flag("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", "report response times in milliseconds",
			func(s *Settings) *bool { return &s.Stats.Prometheus.TimesAreInMillis }),
	}
}

func tracing() []variable {
	return []variable{
		without("TRACING_ENABLED", "false", "boolean", "send traces"),
		without("TRACING_SERVICE_NAME", "RateLimit", "text", "service name in traces"),
		without("TRACING_SERVICE_NAMESPACE", "", "text", "namespace in traces"),
		without("TRACING_SERVICE_INSTANCE_ID", "", "text", "instance in traces"),
		without("TRACING_EXPORTER_PROTOCOL", "http", "text", "protocol of traces"),
		without("TRACING_SAMPLING_RATE", "1", "number", "part of the requests that are traced"),
	}
}
