package grpcpace

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/pace"
)

// Config says which calls are paced, and how.
type Config struct {
	// Methods gives each method its pacer: by its full name ("/mail.v1.Mail/Send"), by all methods of a
	// service ("/mail.v1.Mail/*"), or by all others ("*"). Calls of a method with a nil pacer are not
	// paced.
	Methods map[string]*pace.Pacer
	// Pacer replaces Methods: it chooses the pacer of a call by the target of its connection and
	// its full method. A nil pacer means no pacing. Pacer must return a small, fixed set of pacers.
	Pacer func(target, method string) *pace.Pacer
	// Strict refuses calls for which there is no pacer, with ErrNoPacer. Otherwise they are
	// made as they are.
	Strict bool

	// Adaptive is set for your own services, whose calls may be paced or not. Their calls state the class of
	// their context (throttle.WithClass, or that of the call that the handler serves) in the metadata
	// headgate-criticality; gRPC itself states the deadline. While a service refuses many calls of a
	// class with UNAVAILABLE, others are not made, and fail with an *adaptive.DropError in a status
	// UNAVAILABLE. The calls of each connection target count together, for up to 1,000 targets.
	Adaptive *Adaptive

	// Cost gives the units of a call: 1 when it is nil. The message is that of a unary call
	// or, with PerMessage, the one that is sent; it is nil when a stream begins. A call of 0
	// units needs no permit; less is a fault.
	Cost func(method string, message any) int64
	// MaxWait bounds how long a call, or a message, waits for its permits. 0 means until its
	// deadline, and backoff.DefaultMaxWait, a minute, without a deadline. A negative MaxWait does
	// not wait. An earlier deadline always counts.
	MaxWait time.Duration
	// PerMessage has each message that is sent on a stream take permits, and none
	// its begin.
	PerMessage bool
}

var (
	// ErrNoPacer says that Config has no pacer for the method of a call.
	ErrNoPacer = errors.New("grpcpace: no pacer for the method: give it one in Config.Methods, " +
		"or nil there if it need not be paced")
	errMethods = errors.New("grpcpace: Config wants Methods or Pacer, or Adaptive without both")
	errCost    = errors.New("grpcpace: Config.Cost gave less than 0 units")
)

// methods finds the pacer of a method.
type methods struct {
	exact    map[string]*backoff.Listener
	services map[string]*backoff.Listener // by "/mail.v1.Mail/"
	others   *backoff.Listener
	any      bool // there is an entry for others
}

func newMethods(config map[string]*pace.Pacer, listeners *backoff.Listeners) (*methods, error) {
	m := &methods{exact: make(map[string]*backoff.Listener), services: make(map[string]*backoff.Listener)}
	for name, pacer := range config {
		l := listeners.Listener(pacer)
		service, method := split(name)
		switch {
		case name == "*":
			m.others, m.any = l, true
		case !isService(service) || method == "":
			return nil, fmt.Errorf("grpcpace: Config.Methods has %q: write %q, %q or %q",
				name, "/mail.v1.Mail/Send", "/mail.v1.Mail/*", "*")
		case method == "*":
			m.services[service] = l
		case strings.Contains(name, "*"):
			return nil, fmt.Errorf("grpcpace: Config.Methods has %q: a star stands for a whole name, as in %q",
				name, "/mail.v1.Mail/*")
		default:
			m.exact[name] = l
		}
	}
	return m, nil
}

// find gives the listener of a method, which is nil where none is wanted, and whether
// there is an entry for it.
func (m *methods) find(name string) (l *backoff.Listener, ok bool) {
	if l, ok = m.exact[name]; ok {
		return l, true
	}
	service, _ := split(name)
	if l, ok = m.services[service]; ok {
		return l, true
	}
	return m.others, m.any
}

// isService says whether a name is what stands before a method: "/mail.v1.Mail/".
func isService(name string) bool {
	return len(name) >= len("/s/") && name[0] == '/' && strings.Count(name, "/") == 2
}

// split cuts a full method behind its service.
func split(name string) (service, method string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}
