package check_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/rule"
)

// The second rule allows more requests than the first, which counts the same requests.
func ExampleReach() {
	ip, err := rule.ParsePart("ip")
	if err != nil {
		fmt.Println(err)
		return
	}
	limited := func(name string, count int64) guard.Rule {
		return guard.Rule{
			Rule:     rule.Rule{Name: name, Key: []rule.Part{ip}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: count, Per: time.Second}}},
		}
	}
	rules := []guard.Rule{limited("strict", 10), limited("loose", 20)}
	nothing := func(string) bool { return false }
	for _, f := range check.Reach(rules, false, []bool{true, true}, nothing) {
		fmt.Println(f.Path + ": " + f.Problem)
	}
	// Output: rules[1]: "loose" never decides anything: rules[0], "strict", counts the same requests under the same key, and allows no more
}
