package redis

import (
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/store/resp"
)

// An error reply may say that this server cannot decide, while the address by now leads to another
// server: behind a Kubernetes Service, a DNS name or a TCP proxy, an open connection stays with the
// server that it was made to. The store closes such a connection, and the next call resolves and dials
// the address again. It does so at once after the first reply, and then after pauses.
const (
	// demotedPause is for replies of a server that has lost its role, or is losing it.
	demotedPause = 100 * time.Millisecond
	// refusingPause is for replies of a server that may still be the right one. A new connection then
	// rarely helps, and ends the calls in flight.
	refusingPause = time.Second
	// leftProbe bounds the wait for the next probe of a breaker that is open because of such a reply. Each
	// probe is a decision, which writes.
	leftProbe = 500 * time.Millisecond
	// maxPauses bounds the addresses in pauses. Further ones share one entry.
	maxPauses = 1024
)

// A rule says what to do after an error reply, which begins with its code.
type rule struct {
	code string
	// pause is the least time between two connections that are closed because of the reply; 0 keeps the
	// connection.
	pause  time.Duration
	advice string
}

// ruleTable has the replies of Redis. clusterTable replaces some of them for a store on a cluster, which follows
// moved slots.
var ruleTable, clusterTable = []rule{
	{"READONLY", demotedPause, "this server is a replica. The store dials the address again until it leads to a master: if the address " +
		"belongs to one server, set the address of the master"},
	{"MASTERDOWN", demotedPause, "this server is a replica without a master. The store dials the address again until it leads to a " +
		"master: if the address belongs to one server, set the address of the master"},
	{"LOADING", demotedPause, "the server is loading its data, after a start or as a new replica: wait until it has finished, or let the " +
		"address lead to the master"},
	{"NOREPLICAS", demotedPause, "the master has fewer replicas than min-replicas-to-write: check INFO replication. If a replica was " +
		"promoted, let the address lead to it"},
	{"OOM", refusingPause, "the server's memory is full: raise maxmemory (with noeviction, no counts are lost)"},
	{"MISCONF", refusingPause, "the server cannot save its data and refuses writes: free disk space, or read the server's log"},
	{"CLUSTERDOWN", refusingPause, "this server is a node of a cluster whose slots are not all served: run redis-cli --cluster check " +
		"HOST:PORT, and write redis+cluster in place of redis in the address of the store"},
	{"MOVED", refusingPause, "this server is a node of a cluster: write redis+cluster in place of redis in the address of the store"},
	{"NOAUTH", refusingPause, "the server requires a password: write the password to a file, and set store_password_file to its path"},
	{"WRONGPASS", 0, "the server rejects the user or the password: correct the user in the address, or the file of store_password_file"},
	{"BUSY", 0, "another script blocks the server: look for the script in SLOWLOG, and run SCRIPT KILL if the script does not end"},
	{"TRYAGAIN", 0, "the slot of these keys is moving to another node: try again after the move"},
}, []rule{
	{"CLUSTERDOWN", 0, "no master serves these keys: run redis-cli --cluster check HOST:PORT"},
	{"MOVED", 0, "the cluster is changing its masters: try again when all nodes agree"},
}

// proxyTable has the rule for errors that Redis does not send. A proxy speaks the protocol of Redis, and sends an
// error of its own when it cannot reach a server.
var proxyTable = [1]rule{{pause: refusingPause, advice: "the error is one of a proxy: read the log of the proxy at the address of the " +
	"store, and check that the proxy reaches the master"}}

// ruleOf gives the rule for an error reply, or nil. It may get the first bytes of the reply alone.
func ruleOf(kind Kind, reply string) *rule {
	reply = strings.TrimPrefix(reply, "ERR ") // The client library removes this prefix too.
	code, _, _ := strings.Cut(reply, " ")
	if kind == Cluster {
		if r := find(clusterTable, code); r != nil {
			return r
		}
	}
	if r := find(ruleTable, code); r != nil {
		return r
	}
	if code != strings.ToUpper(code) && isOfProxy(reply) {
		return &proxyTable[0]
	}
	return nil
}

func find(all []rule, code string) *rule {
	for i := range all {
		if all[i].code == code {
			return &all[i]
		}
	}
	return nil
}

// isOfProxy reports whether an error without a code is about the connection of a proxy to its servers. Envoy
// sends "upstream failure" and "no upstream host", and twemproxy the text of an errno.
func isOfProxy(text string) bool {
	for _, word := range []string{"upstream", "onnection", "roxy", "ackend", "no server", "imed out", "nreachable"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// ruleFor gives the rule for an error of a call, or nil if the server can decide.
func ruleFor(kind Kind, err error) *rule {
	if left, ok := errortype.As[*resp.LeftError](err); ok {
		return ruleOf(kind, left.Reply)
	}
	fault, ok := errortype.As[*rueidis.RedisError](err)
	if !ok {
		return nil
	}
	text := fault.Error()
	if _, cause, has := strings.Cut(text, ": -"); has && strings.HasPrefix(text, "Error running script") { // Before Redis 7.
		text = cause
	}
	return ruleOf(kind, text)
}

// pauses has the times at which connections were closed because of an error reply.
type pauses struct {
	mu    sync.Mutex
	until map[string]nextLeave // by address; guarded by mu
}

type nextLeave struct{ demoted, refusing time.Duration }

// mayLeave reports whether a connection to an address may be closed now because of a rule, and notes
// the time. now is the store's monotonic time.
func (p *pauses) mayLeave(addr string, r *rule, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = make(map[string]nextLeave)
	}
	if _, has := p.until[addr]; !has && len(p.until) >= maxPauses {
		addr = ""
	}
	last, has := p.until[addr]
	due := last.refusing
	if r.pause == demotedPause {
		due = last.demoted
	}
	if has && now < due {
		return false
	}
	p.until[addr] = nextLeave{demoted: now + demotedPause, refusing: now + refusingPause}
	return true
}

// judge gives the judge of the replies on a connection to an address.
func (l *link) judge(addr string) func(reply []byte) bool {
	return func(reply []byte) bool {
		r := ruleOf(l.store.config.Kind, string(reply))
		return r != nil && r.pause > 0 && l.pauses.mayLeave(addr, r, l.store.since())
	}
}
