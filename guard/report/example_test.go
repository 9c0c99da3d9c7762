package report_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// A Report observes every decision of a guard.
func Example() {
	key, err := rule.ParsePart("ip")
	if err != nil {
		panic(err)
	}
	rules := []guard.Rule{{
		Rule:     rule.Rule{Name: "login", Match: rule.Match{Path: "/login"}, Key: []rule.Part{key}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}}
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	counted := report.New(report.Config{})
	defer counted.Close()
	g, err := guard.New(guard.Config{Rules: rules, Store: store, Observer: counted.Follow(rules)})
	if err != nil {
		panic(err)
	}
	var a guard.Answer
	for range 3 {
		request := headgate.Request{Path: "/login", IP: netip.MustParseAddr("192.0.2.1")}
		if err := g.Decide(context.Background(), &request, &a); err != nil {
			panic(err)
		}
	}
	for _, n := range counted.Rules()[0].Counts {
		fmt.Println(n.Verdict, n.Reason, n.N)
	}
	// Output:
	// allow within_limit 2
	// deny over_limit 1
}
