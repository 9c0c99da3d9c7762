package state

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRateOf converts limits to thousandths of a unit a second.
func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		count int64
		per   time.Duration
		rate  int64
		fix   string
	}{
		{500, time.Second, 500_000, ""},
		{60, time.Minute, 1000, ""},
		{100, time.Minute, 0, "use 1666/1000s, which is the next lower one"},
		{1, time.Hour, 0, "use at least 1/1000s"},
		{1, 1000 * time.Second, 1, ""},
		{0, 24 * time.Hour, 0, ""},
		{7, 20 * time.Millisecond, 350_000, ""},
		{1, time.Millisecond, 1_000_000, ""},
		{MaxAmount / 1000, time.Second, MaxAmount / 1000 * 1000, ""},
		{MaxAmount/1000 + 1, time.Second, 0, fmt.Sprintf("use at most %d/s", MaxAmount/1000)},
		{1 << 62, time.Nanosecond, 0, fmt.Sprintf("use at most %d/s", MaxAmount/1000)},
	} {
		if rate, fix := RateOf(c.count, c.per); rate != c.rate || fix != c.fix {
			t.Errorf("%d/%v: got %d, %q, want %d, %q", c.count, c.per, rate, fix, c.rate, c.fix)
		}
	}
}

// TestRateOfAgainstTwin compares RateOf with big numbers.
func TestRateOfAgainstTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 7))
	for range 10_000 {
		count, per := random.Int64N(1<<(1+random.IntN(62))), time.Duration(1+random.Int64N(1<<(1+random.IntN(55))))
		if random.IntN(2) == 0 {
			per = time.Duration(1+random.Int64N(100)) * time.Second
		}
		rate := big.NewRat(count, 1)
		rate.Mul(rate, big.NewRat(1_000_000_000_000, int64(per)))
		exact := rate.IsInt() && rate.Cmp(big.NewRat(MaxAmount, 1)) <= 0
		got, fix := RateOf(count, per)
		if (fix == "") != exact || exact && rate.Num().Int64() != got {
			t.Fatalf("%d/%v: got %d, %q, want %v", count, per, got, fix, rate)
		}
	}
}

// TestWithCapacities replaces the capacity of an exact name, and of a name that a pattern matches.
func TestWithCapacities(t *testing.T) {
	file := []Resource{{Match: "mail", Capacity: 5, Safe: 1}, {Match: "a*", Capacity: 7, Slots: true}, {Match: "*", Capacity: 9, Safe: 2}}
	all := WithCapacities(file, map[string]int64{"mail": 50, "sms": 3, "ab": 0})
	for name, want := range map[string]Resource{
		"mail": {Match: "mail", Capacity: 50, Safe: 1},
		"sms":  {Match: "sms", Capacity: 3, Safe: 2},
		"ab":   {Match: "ab", Slots: true},
		"ac":   {Match: "a*", Capacity: 7, Slots: true},
		"more": {Match: "*", Capacity: 9, Safe: 2},
	} {
		if got := ResourceOf(all, name); fmt.Sprint(*got) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %+v", name, *got, want)
		}
	}
	if file[0].Capacity != 5 {
		t.Error("the argument is changed")
	}
	if none := WithCapacities(file[:1], map[string]int64{"sms": 3}); len(none) != 1 {
		t.Errorf("a name without a resource gives %v", none)
	}
}
