package envoyenv

import (
	"slices"
	"time"

	"github.com/headgate/headgate/internal/config"
)

func stores() []variable {
	first := func(s *Settings) *Redis { return &s.Redis }
	second := func(s *Settings) *Redis { return &s.PerSecond }
	return slices.Concat(
		[]variable{newVariable("BACKEND_TYPE", "redis", "one of redis, memcache", "kind of the store",
			func(s *Settings) *string { return &s.Backend }, backend)},
		redisServer("REDIS_", "/var/run/nutcracker/ratelimit.sock", first),
		redisFiles(),
		[]variable{flag("REDIS_PERSECOND", "false", "use a second Redis for limits with the unit SECOND",
			func(s *Settings) *bool { return &s.UsePerSecond })},
		redisServer("REDIS_PERSECOND_", "/var/run/nutcracker/ratelimitpersecond.sock", second),
		memcache(),
	)
}

// redisServer declares the variables that both Redis stores have.
func redisServer(prefix, url string, value func(*Settings) *Redis) []variable {
	return []variable{
		choice(prefix+"SOCKET_TYPE", "unix", "kind of connection", []string{"unix", "tcp", "tls"},
			func(s *Settings) *string { return &value(s).SocketType }),
		choice(prefix+"TYPE", "single", "kind of Redis", []string{"single", "cluster", "sentinel"},
			func(s *Settings) *string { return &value(s).Type }),
		text(prefix+"URL", url, "address; a list for a cluster; master,host:port for sentinels",
			func(s *Settings) *string { return &value(s).URL }),
		secret(prefix+"AUTH", "password, or user:password", func(s *Settings) *config.Secret { return &value(s).Auth }),
		secret(prefix+"SENTINEL_AUTH", "password, or user:password, of the sentinels",
			func(s *Settings) *config.Secret { return &value(s).SentinelAuth }),
		flag(prefix+"TLS", "false", "encrypt the connections", func(s *Settings) *bool { return &value(s).UseTLS }),
		duration(prefix+"TIMEOUT", "10s", "timeout of opening a connection",
			func(s *Settings) *time.Duration { return &value(s).Timeout }),
		without(prefix+"POOL_SIZE", "10", "whole number", "number of connections"),
		without(prefix+"PIPELINE_WINDOW", "0", "duration", "time for which commands are collected"),
		without(prefix+"PIPELINE_LIMIT", "0", "whole number", "number of commands that are collected"),
		without(prefix+"POOL_ON_EMPTY_BEHAVIOR", "WAIT", "text", "what to do without a free connection"),
		without(prefix+"USE_EXPLICIT_PIPELINE", "false", "boolean", "send commands in explicit pipelines"),
		without(prefix+"CLUSTER_PIPELINE_PARALLELISM", "", "whole number", "simultaneous pipelines of a cluster"),
	}
}

// redisFiles declares the variables of both stores together.
func redisFiles() []variable {
	return []variable{
		text("REDIS_TLS_CLIENT_CERT", "", "client certificate file", func(s *Settings) *string { return &s.Redis.Files.Cert }),
		text("REDIS_TLS_CLIENT_KEY", "", "key file of the client certificate", func(s *Settings) *string { return &s.Redis.Files.Key }),
		text("REDIS_TLS_CACERT", "", "authorities file for the server's certificate",
			func(s *Settings) *string { return &s.Redis.Files.CA }),
		flag("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", "verify the chain of the server's certificate, and not its name",
			func(s *Settings) *bool { return &s.Redis.SkipName }),
		flag(healthVariable, "false", "be unhealthy when the last connection is lost",
			func(s *Settings) *bool { return &s.HealthByRedis }),
		flag(readOnlyVariable, "false", "close a connection whose server answers READONLY, and dial again",
			func(s *Settings) *bool { return &s.CloseOnReadOnly }),
		without("REDIS_STARTUP_INITIAL_INTERVAL", "1s", "duration", "first pause between attempts to connect at the start"),
		without("REDIS_STARTUP_MAX_INTERVAL", "30s", "duration", "longest pause between attempts to connect at the start"),
		without("REDIS_STARTUP_MAX_ELAPSED_TIME", "0", "duration", "time after which these attempts end"),
	}
}

func memcache() []variable {
	return []variable{
		list("MEMCACHE_HOST_PORT", "addresses of the servers", func(s *Settings) *[]string { return &s.Memcache.Servers }),
		text("MEMCACHE_SRV", "", "DNS name of the servers", func(s *Settings) *string { return &s.Memcache.SRV }),
		duration("MEMCACHE_SRV_REFRESH", "0", "interval in which MEMCACHE_SRV is resolved; 0 for once",
			func(s *Settings) *time.Duration { return &s.Memcache.SRVRefresh }),
		flag("MEMCACHE_TLS", "false", "encrypt the connections", func(s *Settings) *bool { return &s.Memcache.UseTLS }),
		text("MEMCACHE_TLS_CLIENT_CERT", "", "client certificate file", func(s *Settings) *string { return &s.Memcache.Files.Cert }),
		text("MEMCACHE_TLS_CLIENT_KEY", "", "key file of the client certificate",
			func(s *Settings) *string { return &s.Memcache.Files.Key }),
		text("MEMCACHE_TLS_CACERT", "", "authorities file for the server's certificate",
			func(s *Settings) *string { return &s.Memcache.Files.CA }),
		flag("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", "verify the chain of the server's certificate, and not its name",
			func(s *Settings) *bool { return &s.Memcache.SkipName }),
		without("MEMCACHE_MAX_IDLE_CONNS", "2", "whole number", "idle connections for each server"),
	}
}
