package prepared_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/prepared"
)

func limitOf(n int64) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{Count: n, Per: time.Second}}
}

func text(p headgate.Policy) (*string, error) {
	s := p.Limit.String()
	return &s, nil
}

func Example() {
	policies := prepared.New[string](100)
	id, err := policies.Prepare(limitOf(5), text)
	fmt.Println(id, err, *policies.Get(id))
	// Output: 1 <nil> 5/1s
}

// TestOneNameEach: however many prepare at once, equal policies have one name and one
// plan, and what was not prepared has none.
func TestOneNameEach(t *testing.T) {
	policies := prepared.New[string](1000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range int64(200) {
				id, err := policies.Prepare(limitOf(n), text)
				if err != nil {
					t.Error(err)
					return
				}
				if got := policies.Get(id); got == nil || *got != limitOf(n).Limit.String() {
					t.Errorf("policy %d has the plan of another: %v", n, got)
				}
			}
		})
	}
	all.Wait()
	if policies.Get(0) != nil || policies.Get(200) == nil || policies.Get(201) != nil {
		t.Error("200 policies have other names than 1 to 200")
	}
}

// TestRefusals: a policy that cannot be compiled has no name, and there is an end to them.
func TestRefusals(t *testing.T) {
	policies := prepared.New[string](2)
	unfit := errors.New("does not fit")
	if _, err := policies.Prepare(limitOf(1), func(headgate.Policy) (*string, error) { return nil, unfit }); !errors.Is(err, unfit) {
		t.Errorf("%v, want that of compile", err)
	}
	for n := range int64(2) {
		if id, err := policies.Prepare(limitOf(n+1), text); err != nil || id != headgate.PolicyID(n+1) {
			t.Errorf("policy %d: named %d, %v", n, id, err)
		}
	}
	if _, err := policies.Prepare(limitOf(9), text); !errors.Is(err, headgate.ErrTooManyPolicies) {
		t.Errorf("a third of two: %v", err)
	}
	if id, err := policies.Prepare(limitOf(2), text); err != nil || id != 2 {
		t.Errorf("one that is there: named %d, %v", id, err)
	}
}
