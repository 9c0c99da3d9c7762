package fields_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

func ExampleStyle_Announce() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := rule.ParsePart("ip")
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "product", Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var a guard.Answer
	if err := g.Decide(context.Background(), &headgate.Request{Method: "GET", Path: "/v1/product"}, &a); err != nil {
		fmt.Println(err)
		return
	}
	h := http.Header{}
	fields.Draft.Announce(h, &a)
	fmt.Println("RateLimit-Policy:", h.Get("RateLimit-Policy"))
	fmt.Println("RateLimit:", h.Get("RateLimit"))
	// Output:
	// RateLimit-Policy: "product";q=100;w=60
	// RateLimit: "product";r=99;t=60
}
