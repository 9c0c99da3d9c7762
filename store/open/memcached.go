package open

import (
	"context"
	"net"

	"github.com/headgate/headgate/config"
)

// memcachedDial makes the connections to Memcached, with TLS if the configuration says so. nil is the dialer of
// package memcached.
func memcachedDial(s *config.SharedStore, o Options) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	if !s.TLS {
		return o.Dial, nil
	}
	client, err := secure(s.Files)
	if err != nil {
		return nil, err
	}
	plain := o.Dial
	if plain == nil {
		plain = new(net.Dialer).DialContext // Package memcached bounds it by its context.
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialWith(plain, network)(ctx, address, nil, client)
	}, nil
}
