package etcd

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below those that systems give to outgoing connections (32768 and
// up on Linux, 49152 elsewhere): so no client takes the port of a server that is
// down for a while.
const (
	lowestPort = 10_000
	ports      = 32_768 - lowestPort
)

// freePorts gives two addresses of loopback that nobody listens on. Somebody may, a
// moment later: so starting is tried again.
func freePorts() (client, peer string, err error) {
	for range 1000 {
		port := lowestPort + rand.IntN(ports-1)
		client, peer = loopback(port), loopback(port+1)
		if free(client) && free(peer) {
			return client, peer, nil
		}
	}
	return "", "", errors.New("no two ports are free on 127.0.0.1: end the programs that listen on hundreds of them")
}

func free(addr string) bool {
	l, err := net.Listen("tcp", addr) //nolint:noctx // it ends at once
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
