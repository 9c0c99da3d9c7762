package open

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/store/redis"
)

// redisConfig gives the configuration for package redis. fallbacks names the fallbacks of the
// rules and the domains.
func redisConfig(s *config.SharedStore, o Options, fallbacks func() string) (redis.Config, error) {
	c := redis.Config{
		Client:  rueidis.ClientOption{InitAddress: s.Addresses, SelectDB: s.Database, Username: s.User},
		Breaker: breakerOf(s.Breaker), Changed: tellChanges(o.Log, fallbacks),
	}
	c.Client.Dialer.Timeout, c.Client.Sentinel.Dialer.Timeout = s.DialTimeout, s.DialTimeout
	if err := credentials(s, &c.Client); err != nil {
		return redis.Config{}, err
	}
	if s.TLS {
		client, err := secure(s.Files)
		if err != nil {
			return redis.Config{}, err
		}
		c.Client.TLSConfig, c.Client.Sentinel.TLSConfig = client, client
	}
	switch s.Kind {
	case config.KindRedisCluster:
		c.Kind, c.Slots = redis.Cluster, s.Slots
	case config.KindRedisSentinel:
		c.Kind, c.Client.Sentinel.MasterSet = redis.Sentinel, s.Master
	default:
	}
	dial, network := o.Dial, "tcp"
	if s.Socket() != "" {
		network = "unix"
		if dial == nil {
			dial = new(net.Dialer).DialContext // Package redis bounds it by its context.
		}
	}
	if dial != nil {
		c.Client.DialCtxFn = dialWith(dial, network)
	}
	return c, nil
}

// credentials adds the passwords. A password file is read again for each connection, so that
// the password can change. With sentinels, the master's password is read once: the client
// would send a changing password to the sentinels too.
func credentials(s *config.SharedStore, client *rueidis.ClientOption) error {
	client.Password = s.Password.Reveal()
	if s.PasswordFile != "" {
		password, err := readPassword("store_password_file", s.PasswordFile)
		if err != nil {
			return err
		}
		client.Password = password
		if s.Kind != config.KindRedisSentinel {
			client.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
				password, err := readPassword("store_password_file", s.PasswordFile)
				return rueidis.AuthCredentials{Username: s.User, Password: password}, err
			}
		}
	}
	client.Sentinel.Username, client.Sentinel.Password = s.SentinelUser, s.SentinelPassword.Reveal()
	if s.SentinelPasswordFile != "" {
		password, err := readPassword("store_sentinel_password_file", s.SentinelPasswordFile)
		if err != nil {
			return err
		}
		client.Sentinel.Password = password
	}
	return nil
}

// tellChanges logs servers that stop answering, and servers that answer again.
func tellChanges(log *slog.Logger, fallbacks func() string) func(redis.Change) {
	if log == nil {
		return nil
	}
	return func(c redis.Change) {
		if c.Gone {
			log.Info("redis server has no keys any more: others have taken them over", "server", c.Node)
			return
		}
		if c.State == breaker.Closed {
			log.Info("redis server answers again", "server", c.Node)
			return
		}
		if c.Refuses {
			log.Warn("redis server does not answer with decisions: fallbacks decide for its keys until it does", "server", c.Node,
				"fallbacks", fallbacks(), "error", c.Err)
			return
		}
		log.Warn("redis server does not answer: fallbacks decide for its keys until it does", "server", c.Node,
			"fallbacks", fallbacks(), "error", c.Err)
	}
}

// dialWith makes connections with dial, and uses TLS if the configuration says so.
func dialWith(dial func(ctx context.Context, network, address string) (net.Conn, error), network string) func(
	context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, _ *net.Dialer, secure *tls.Config) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil || secure == nil {
			return plain, err
		}
		if secure.ServerName == "" {
			secure = secure.Clone()
			if secure.ServerName, _, err = net.SplitHostPort(address); err != nil {
				_ = plain.Close()
				return nil, err
			}
		}
		encrypted := tls.Client(plain, secure)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, err
		}
		return encrypted, nil
	}
}
