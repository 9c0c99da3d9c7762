package guard_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

func Example() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "product", Match: rule.Match{Path: "/v1/product"}, Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &headgate.Request{Method: "GET", Path: "/v1/product", Header: headers{"X-Client-Id": "a"}}
	var answer guard.Answer
	for range 3 {
		if err := g.Decide(context.Background(), req, &answer); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(answer.Verdict, answer.Closest().Policy, answer.Closest().Decision.Remaining)
	}
	// Output:
	// allow product 1
	// allow product 0
	// deny product 0
}

// atMostOne is a stage that admits one request at a time, and refuses the others.
type atMostOne struct{ busy atomic.Bool }

func (*atMostOne) Rule() guard.Rule   { return guard.Rule{Rule: rule.Rule{Name: "at_most_one"}} }
func (*atMostOne) Facts() guard.Facts { return guard.Facts{} }

func (s *atMostOne) Enter(*guard.Pass) headgate.Decision {
	if !s.busy.CompareAndSwap(false, true) {
		return headgate.Decision{Verdict: headgate.Deny, Reason: headgate.QueueFull}
	}
	return headgate.Decision{Reason: headgate.WithinLimit}
}

func (s *atMostOne) Leave(*guard.Pass, *guard.Outcome) { s.busy.Store(false) }

// A stage is told when a request has ended. A program with a stage calls Admit, Forward and Done
// instead of Decide. The middleware and the proxy do so.
func ExampleTicket() {
	g, err := guard.New(guard.Config{Stages: []guard.Stage{&atMostOne{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	admit := func() *guard.Ticket {
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(context.Background(), &headgate.Request{Path: "/"}, ticket); err != nil {
			fmt.Println(err)
			return ticket
		}
		fmt.Println(ticket.Answer.Verdict)
		return ticket
	}
	first, second := admit(), admit()
	second.Done(guard.Outcome{End: guard.Refused})
	first.Forward()
	// Here the request is handled.
	first.Done(guard.Outcome{Status: 200})
	admit().Done(guard.Outcome{Status: 200})
	// Output:
	// allow
	// deny
	// allow
}

// A guard with only fair share needs no store and no list of clients.
func ExampleNewFairShare() {
	share, err := guard.NewFairShare(2, "header:X-Client-Id")
	if err != nil {
		fmt.Println(err)
		return
	}
	share.Weights = map[string]int64{"a": 1, "b": 1} // These clients are known from the start; others may follow.
	// A stopped clock keeps this example in one cycle. Real programs leave Clock out.
	g, err := guard.New(guard.Config{FairShare: share, Clock: func() headgate.Instant { return 0 }})
	if err != nil {
		fmt.Println(err)
		return
	}
	var answer guard.Answer
	for _, client := range []string{"a", "a", "b", ""} {
		req := &headgate.Request{Method: "GET", Path: "/v1/product", Header: headers{"X-Client-Id": client}}
		if err := g.Decide(context.Background(), req, &answer); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q: %v, %v\n", client, answer.Verdict, answer.Closest().Decision.Reason)
	}
	// Output:
	// "a": allow, within_limit
	// "a": deny, over_share
	// "b": allow, within_limit
	// "": deny, anonymous_client
}
