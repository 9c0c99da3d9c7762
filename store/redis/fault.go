package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/resp"
	"github.com/headgate/headgate/internal/store/script"
)

// couldNot wraps an error of the server or the network, with what to do next.
func couldNot(do string, err error) error {
	return fmt.Errorf("redis: could not %s: %w: %s", do, err, advice(err))
}

// couldNotEncode wraps the error of an invalid query.
func couldNotEncode(err error) error { return fmt.Errorf("redis: %w", err) }

func advice(err error) string {
	fault, ok := rueidis.IsRedisErr(err)
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.Is(err, resp.ErrReply):
		return "check what listens at the server's address: another program, or a proxy that changes replies"
	case errors.As(err, &plain), errors.Is(err, errWithoutTLS):
		return "the server answers without TLS: write redis in place of rediss in the address of the store, or name its TLS port"
	case errors.As(err, &certificate):
		return "set store_tls.ca to the authority of the server's certificate, or store_tls.server_name to the name in it"
	case unsent(err):
		return "nothing was sent: check the server with redis-cli -h HOST -p PORT ping"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "the call may have been counted: check the server's SLOWLOG and LATENCY, or raise store_timeout"
	case errors.Is(err, rueidis.ErrClosing):
		return "the store is closed: stop its callers before Close"
	case !ok:
		return "the call may have been counted: check the server with redis-cli -h HOST -p PORT ping, and read its log"
	}
	if text := fault.Error(); strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "can't run this command") {
		return "grant the user the rights that docs/stores.md lists, on keys " + script.Prefix + "*"
	}
	for _, known := range []struct{ word, advice string }{
		{"OOM", "the server's memory is full: raise maxmemory (with noeviction, no counts are lost)"},
		{"NOREPLICAS", "the master has fewer replicas than min-replicas-to-write: check INFO replication"},
		{"READONLY", "this server is a replica: set the address of the master"},
		{"LOADING", "the server is loading its data after a start: try again in a moment"},
		{"MASTERDOWN", "this server is a replica without a master: set the address of the master"},
		{"BUSY", "another script blocks the server: look for the script in SLOWLOG, and run SCRIPT KILL if the script does not end"},
		{"NOAUTH", "the server requires a password: write the password to a file, and set store_password_file to its path"},
		{"WRONGPASS", "the server rejects the user or the password: correct the user in the address, or the file of store_password_file"},
		{"CLUSTERDOWN", "no master serves these keys: run redis-cli --cluster check HOST:PORT"},
		{"TRYAGAIN", "the slot of these keys is moving to another node: try again after the move"},
		{"MOVED", "the cluster is changing its masters: try again when all nodes agree"},
		{"WRONGTYPE", "another program writes keys that begin with " + script.Prefix + " use a separate database for Headgate"},
		{"MISCONF", "the server cannot save its data and refuses writes: free disk space, or read the server's log"},
	} {
		if strings.HasPrefix(fault.Error(), known.word) {
			return known.advice
		}
	}
	return "read the server's log"
}

// unsent reports whether a call was not sent because the connection to the node failed.
func unsent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// moving reports whether the server refused a call because its slot is moving to another node. The
// server has not run the call, and is healthy.
func moving(err error) bool {
	fault, ok := rueidis.IsRedisErr(err)
	return ok && fault.IsTryAgain()
}
