package merge

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/testkit/race"
)

// series makes values; below 0 is a step without data.
func series(values ...float64) (all []*float64) {
	for _, v := range values {
		if v < 0 {
			all = append(all, nil)
			continue
		}
		all = append(all, &v)
	}
	return all
}

func history(start int64, step int, values ...float64) *admin.History {
	return &admin.History{Instance: "a", Start: start, Step: step, Series: map[string][]*float64{"requests": series(values...)}}
}

func textOf(h *admin.History) string {
	text := fmt.Sprint(h.Start, "/", h.Step, ":")
	for _, v := range h.Series["requests"] {
		if v == nil {
			text += " -"
		} else {
			text += fmt.Sprint(" ", *v)
		}
	}
	return text
}

// TestHistory has gaps, instances that have just started, and answers that do not fit.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		own    *admin.History
		others []*admin.History
		want   string
	}{
		{"alone", history(100, 1, 1, 2), nil, "100/1: 1 2"},
		{"sums", history(100, 1, 1, 2), []*admin.History{history(100, 1, 10, 20)}, "100/1: 11 22"},
		{"a gap of one is the value of the other", history(100, 1, 1, -1, 3), []*admin.History{history(100, 1, 10, 20, -1)}, "100/1: 11 20 3"},
		{"a gap of all", history(100, 1, 1, -1), []*admin.History{history(100, 1, 10, -1)}, "100/1: 11 -"},
		{"one began earlier, and is a step ahead", history(100, 10, 1, 2), []*admin.History{history(90, 10, 5, 6, 7, 8)}, "90/10: 5 7 9 8"},
		{"the own instance has just started", history(100, 1), []*admin.History{history(90, 1, 5, 6)}, "90/1: 5 6"},
		{"another step", history(100, 1, 1), []*admin.History{history(100, 10, 50)}, "100/1: 1"},
		{"steps at other times", history(100, 10, 1), []*admin.History{history(105, 10, 50)}, "100/10: 1"},
		{"an impossible start", history(100, 1, 1), []*admin.History{history(1<<62, 1, 50), history(-1<<62, 1, 50)}, "100/1: 1"},
		{"no step", &admin.History{}, []*admin.History{history(100, 1, 1)}, "0/0:"},
		{"a step of 0 of another", history(100, 1, 1), []*admin.History{history(100, 0, 1)}, "100/1: 1"},
	} {
		if got := textOf(OfHistory(row.own, row.others, []string{"requests"})); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestHistoryIsTheSum compares with a slow twin, which looks up each second in each history.
func TestHistoryIsTheSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range race.Fewer(2000, 200) {
		step := []int{1, 10, 300}[random.IntN(3)]
		var all []*admin.History
		for range 1 + random.IntN(5) {
			var values []float64
			for range 1 + random.IntN(20) {
				values = append(values, float64(random.IntN(50)-10))
			}
			all = append(all, history(int64(step)*(1000+random.Int64N(10)), step, values...))
		}
		got := OfHistory(all[0], all[1:], []string{"requests"})
		for second := int64(step) * 990; second < int64(step)*1060; second += int64(step) {
			want, known := 0.0, false
			for _, h := range all {
				at := int(second-h.Start) / step
				if second >= h.Start && at < len(h.Series["requests"]) && h.Series["requests"][at] != nil {
					want, known = want+*h.Series["requests"][at], true
				}
			}
			var has *float64
			if at := int(second-got.Start) / step; second >= got.Start && at < len(got.Series["requests"]) {
				has = got.Series["requests"][at]
			}
			if known != (has != nil) || known && *has != want {
				t.Fatalf("at %d: got %v, want %v %v", second, has, want, known)
			}
		}
	}
}
