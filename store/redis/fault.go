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
		return "see what answers at the server's address: another program, or something on the way that changes replies"
	case errors.As(err, &plain), errors.Is(err, errWithoutTLS):
		return "the server answers without TLS: write redis in place of rediss in the address of the store, or name its TLS port"
	case errors.As(err, &certificate):
		return "name the authority of the server's certificate in store_tls.ca, or its name in store_tls.server_name"
	case unsent(err):
		return "nothing was sent: see whether redis-cli -h HOST -p PORT ping answers"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "the time was up, and it may have been counted: look at the server's SLOWLOG and LATENCY, or raise store_timeout"
	case errors.Is(err, rueidis.ErrClosing):
		return "the client was closed: stop asking first, then close it"
	case !ok:
		return "it may have been counted: see whether redis-cli -h HOST -p PORT ping answers, and look into the server's log"
	}
	if text := fault.Error(); strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "can't run this command") {
		return "allow the user what docs/stores.md lists, on keys " + script.Prefix + "*"
	}
	for _, known := range []struct{ word, advice string }{
		{"OOM", "the server's memory is full: raise maxmemory; with noeviction nothing that is counted is lost"},
		{"NOREPLICAS", "too few replicas follow the master, and min-replicas-to-write refuses: see INFO replication"},
		{"READONLY", "this is a replica: give the address of the master"},
		{"LOADING", "the server is reading its data after a start: try again in a moment"},
		{"MASTERDOWN", "this is a replica without a master: give the address of the master"},
		{"BUSY", "another script holds the server: see SLOWLOG, and SCRIPT KILL if it does not end"},
		{"NOAUTH", "the server asks for a password: write it into a file, and name the file in store_password_file"},
		{"WRONGPASS", "the server refuses the user or the password: correct the user of the address, or the file of store_password_file"},
		{"CLUSTERDOWN", "the cluster has no master for these keys: see redis-cli --cluster check"},
		{"TRYAGAIN", "the slot of these keys is being moved to another node: it passes when that has ended"},
		{"MOVED", "the cluster is changing its masters: it passes when all nodes agree"},
		{"WRONGTYPE", "another program writes keys that begin with " + script.Prefix + " give Headgate a database of its own"},
		{"MISCONF", "the server cannot save to disk and refuses writes: free its disk, or see its log"},
	} {
		if strings.HasPrefix(fault.Error(), known.word) {
			return known.advice
		}
	}
	return "see the server's log"
}

// unsent reports that there was no connection to the node, so the call was not sent.
func unsent(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

// moving reports whether a call was refused because its slot is moving to another node. The call
// was not run, and the node is healthy.
func moving(err error) bool {
	fault, ok := rueidis.IsRedisErr(err)
	return ok && fault.IsTryAgain()
}
