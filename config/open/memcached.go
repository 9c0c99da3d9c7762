package open

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/config"
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

// mostRecords bounds the servers that SRV records name.
const mostRecords = 64

// lookupServers finds the servers of SRV records, in any order, without duplicates. Priority and weight have no
// meaning: a key is kept on one server, and all instances must agree on it.
func lookupServers(name string, lookup lookupSRV) func(ctx context.Context) ([]string, error) {
	if lookup == nil {
		lookup = net.DefaultResolver.LookupSRV
	}
	return func(ctx context.Context) ([]string, error) {
		_, records, err := lookup(ctx, "", "", name)
		if err != nil {
			return nil, err
		}
		var servers []string
		for _, r := range records {
			host := strings.ToLower(strings.TrimSuffix(r.Target, "."))
			if host == "" || r.Port == 0 {
				continue // A target of "." means that there is no service.
			}
			servers = append(servers, net.JoinHostPort(host, strconv.Itoa(int(r.Port))))
		}
		slices.Sort(servers)
		servers = slices.Compact(servers)
		if len(servers) == 0 || len(servers) > mostRecords {
			return nil, fmt.Errorf("the SRV records of %s name %d servers: name 1 to %d", name, len(servers), mostRecords)
		}
		return servers, nil
	}
}

// lookupSRV is the method LookupSRV of a net.Resolver.
type lookupSRV = func(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
