package remote

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// ErrUnavailable says that the store did not answer, and the fallback of a rule is error. It does not wrap the error of the
// store, which has addresses that clients must not learn: the log has them.
var ErrUnavailable = errors.New("the store could not decide: the log of headgate server says why")

// Batch is the requests of one message and the decisions on them. Its memory can be used for many
// messages. A Batch is not safe for concurrent use. The zero Batch is ready.
type Batch struct {
	guard    *guard.Guard
	client   *access.Client
	noWait   bool
	busy     error // The client is above its limit: requests from granted on are not decided.
	granted  int
	needs    rule.Needs
	reads    *rule.Reads
	stated   []request
	requests []headgate.Request // those without a fault
	answers  []guard.Answer
	headers  []values
	cookies  []values
	queries  []values
}

// request is one request of a message.
type request struct {
	fault error
	place int // in the requests without a fault
}

// Begin begins a message of a client, to be decided by g. A nil client may do what clients of a listener
// without auth may. With noWait, a request that would have to wait is refused, because the client cannot wait.
func (b *Batch) Begin(g *guard.Guard, client *access.Client, noWait bool) {
	b.drop()
	b.noWait = noWait
	b.guard, b.client, b.busy, b.needs, b.reads = g, client, nil, g.Needs(), g.Reads()
}

// drop drops all requests, and their texts. Else a client could have each message leave a long text behind the shorter next one.
func (b *Batch) drop() {
	clear(b.stated)
	clear(b.requests)
	clear(b.headers)
	clear(b.cookies)
	clear(b.queries)
	b.stated, b.requests, b.headers, b.cookies, b.queries = b.stated[:0], b.requests[:0], b.headers[:0], b.cookies[:0], b.queries[:0]
}

// Add adds a request. It keeps the texts and the entries of r until the next Begin.
func (b *Batch) Add(r *Request) {
	place := len(b.requests)
	b.requests = append(b.requests, headgate.Request{})
	err := b.fill(&b.requests[place], r)
	if err != nil {
		b.shorten(place)
	}
	b.stated = append(b.stated, request{err, place})
}

// shorten drops the requests from a place on.
func (b *Batch) shorten(place int) {
	clear(b.requests[place:])
	b.requests = b.requests[:place]
}

// fill fills a request that is to be decided.
func (b *Batch) fill(into *headgate.Request, r *Request) error {
	if err := b.client.Permit(config.ScopeDecide); err != nil {
		return err
	}
	if err := r.fill(into, b.needs); err != nil {
		return err
	}
	into.Permitted, into.NoWait = b.client.Rules(), b.noWait
	if r.Domain != "" {
		if err := b.client.PermitDomain(r.Domain); err != nil {
			return err
		}
		if b.guard.HasDomain(r.Domain) {
			return &FaultError{"domain", quote(r.Domain) + " is decided by its tree", "ask the rate limit service of Envoy, or POST /json"}
		}
	}
	if len(r.Query) > 0 {
		b.queries = append(b.queries, values{entries: r.Query, query: true})
		query := &b.queries[len(b.queries)-1]
		into.Query = query
		if err := query.plain(b.reads.Queries); err != nil {
			return err
		}
	}
	if len(r.Headers)+len(r.Cookies) == 0 {
		return nil
	}
	b.headers, b.cookies = append(b.headers, values{}), append(b.cookies, values{cookies: true})
	headers, cookies := &b.headers[len(b.headers)-1], &b.cookies[len(b.cookies)-1]
	headers.entries, cookies.entries = r.Headers, r.Cookies
	into.Header, into.Cookie = headers, cookies
	return once(headers, cookies, b.reads)
}

// Len is the number of added requests.
func (b *Batch) Len() int { return len(b.stated) }

// Decide decides the requests that have no fault, with one query to the store. Requests above the limit of the
// client are not decided: the error, a *access.BusyError, says that no request is within it.
func (b *Batch) Decide(ctx context.Context) error {
	b.granted, b.busy = b.client.TakeSome(len(b.stated))
	if b.busy != nil {
		b.shorten(b.placesWithin())
	}
	for len(b.answers) < len(b.requests) {
		b.answers = append(b.answers, guard.Answer{})
	}
	b.guard.DecideAll(ctx, b.requests, b.answers)
	if b.granted == 0 {
		return b.busy
	}
	return nil
}

// placesWithin is the number of requests without a fault within the limit of the client.
func (b *Batch) placesWithin() int {
	if b.granted < len(b.stated) {
		return b.stated[b.granted].place
	}
	return len(b.requests)
}

// Answer reads the decision on request i into out, or says why there is none: a *FaultError, an error of guard.Decide or
// of package access, or ErrUnavailable. The decision is valid until the next Begin.
func (b *Batch) Answer(i int, out *Answer) error {
	request := &b.stated[i]
	switch {
	case b.busy != nil && i >= b.granted:
		return b.busy
	case request.fault != nil:
		return request.fault
	}
	a := &b.answers[request.place]
	if a.Error != nil {
		if outside, found := errors.AsType[*guard.PermitError](a.Error); found {
			return b.client.OutsideRules(outside.Rule)
		}
		return a.Error
	}
	if Undecided(a) {
		return ErrUnavailable
	}
	Read(a, b.requests[request.place].Path, out)
	return nil
}

// Take adds what each request took to into, and gives the number of requests that took anything.
func (b *Batch) Take(into *guard.TakenAll) (taken int) {
	for i := range b.stated {
		request := &b.stated[i]
		if request.fault != nil || b.busy != nil && i >= b.granted || b.answers[request.place].Error != nil {
			into.AddNone()
		} else if into.Add(&b.answers[request.place]) {
			taken++
		}
	}
	return taken
}

// Release drops the texts of the requests, and the memory of a message that was larger than most.
func (b *Batch) Release() {
	const most = 128
	if len(b.stated) > most {
		*b = Batch{}
		return
	}
	b.client = nil
	b.drop()
}
