package guard_test

import (
	"context"
	"fmt"
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
