package pace_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

func TestParseDocument(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		text  string
		index int
		want  schedule.Plan
	}{
		{`{"limit":"50000/s","instances":96}`, 3, schedule.Plan{Limit: 50_000, Per: time.Second, Instances: 96, Index: 3}},
		{`{"limit":50000,"instances":96}`, 95, schedule.Plan{Limit: 50_000, Per: time.Second, Instances: 96, Index: 95}},
		{`{"limit":500,"per":"2s","instances":8,"index":3}`, -1, schedule.Plan{Limit: 500, Per: 2 * time.Second, Instances: 8, Index: 3}},
		{`{"limit":500,"per":"2s","instances":8,"index":3}`, 3, schedule.Plan{Limit: 500, Per: 2 * time.Second, Instances: 8, Index: 3}},
		{`{"limit":0,"instances":1}`, 0, schedule.Plan{Per: time.Second, Instances: 1}},
		{`{"limit":"0/s","instances":1}`, 0, schedule.Plan{Per: time.Second, Instances: 1}},
		{`{"limit":"10/ms","instances":1}`, 0, schedule.Plan{Limit: 10, Per: time.Millisecond, Instances: 1}},
		{`{"limit":"100/m","instances":1}`, 0, schedule.Plan{Limit: 100, Per: time.Minute, Instances: 1}},
		{`{"limit":"100/h","instances":1}`, 0, schedule.Plan{Limit: 100, Per: time.Hour, Instances: 1}},
		{`{"limit":"100/d","instances":1}`, 0, schedule.Plan{Limit: 100, Per: day, Instances: 1}},
		{`{"limit":"100/366d","instances":1}`, 0, schedule.Plan{Limit: 100, Per: 366 * day, Instances: 1}},
		{`{"limit":"100/1h30m","instances":1}`, 0, schedule.Plan{Limit: 100, Per: 90 * time.Minute, Instances: 1}},
		{`{"limit":1,"per":"d","instances":1}`, 0, schedule.Plan{Limit: 1, Per: day, Instances: 1}},
		{`{"limit":1099511627776,"instances":1048576}`, 1_048_575, schedule.Plan{Limit: 1 << 40, Per: time.Second, Instances: 1 << 20, Index: 1<<20 - 1}},
		{" \r\n\t{\"instances\" : 2 ,\n\"limit\" : 7}\n", 1, schedule.Plan{Limit: 7, Per: time.Second, Instances: 2, Index: 1}},
	} {
		got, err := pace.ParseDocument([]byte(c.text), c.index)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got.Limit != c.want.Limit || got.Per != c.want.Per || got.Instances != c.want.Instances || got.Index != c.want.Index {
			t.Errorf("%s: got %d/%v, %d of %d", c.text, got.Limit, got.Per, got.Index, got.Instances)
		}
	}
}

// TestParseDocumentPlanDivides: the plan of a parsed document gives parts.
func TestParseDocumentPlanDivides(t *testing.T) {
	sum := int64(0)
	for i := range 96 {
		plan, err := pace.ParseDocument([]byte(`{"limit":10,"instances":96}`), i)
		if err != nil {
			t.Fatal(err)
		}
		sum += plan.Part(1_700_000_000)
	}
	if sum != 10 {
		t.Errorf("the parts of a window add up to %d, want 10", sum)
	}
}

func TestParseDocumentErrors(t *testing.T) {
	const shared = 0
	for _, c := range []struct {
		text  string
		index int
		want  string
	}{
		{``, shared, "ends too soon"},
		{` `, shared, "ends too soon"},
		{`{`, shared, "ends too soon"},
		{`{"limit"`, shared, "ends too soon"},
		{`{"limit":5`, shared, "ends too soon"},
		{`{"limit":5,"instances":9`, shared, "ends too soon"},
		{`{"limit":"5/s`, shared, "ends too soon"},
		{`{"limit":5,}`, shared, "no JSON"},
		{`{"limit":5 "instances":9}`, shared, "no JSON"},
		{`{limit:5}`, shared, "no JSON"},
		{"\ufeff{}", shared, "no JSON"},
		{"limit: 5\n", shared, "no JSON"},
		{`{"limit":NaN,"instances":9}`, shared, "no JSON"},
		{`{"limit":Infinity,"instances":9}`, shared, "no JSON"},
		{`{"limit":0x10,"instances":9}`, shared, "no JSON"},
		{`{"limit":+5,"instances":9}`, shared, "no JSON"},
		{`[{"limit":5,"instances":9}]`, shared, "begins with"},
		{`null`, shared, "begins with"},
		{`5`, shared, "begins with"},
		{`"{}"`, shared, "begins with"},
		{`{"limit":5,"instances":9} {}`, shared, "behind the object"},
		{`{"limit":5,"instances":9}}`, shared, "behind the object"},
		{`{"limit":5,"instances":9}x`, shared, "behind the object"},
		{"{\"limit\":5,\"instances\":9}\x00", shared, "behind the object"},
		{`{"limits":5,"instances":9}`, shared, `unknown field "limits": there are limit, per, instances and index`},
		{`{"Limit":5,"instances":9}`, shared, `unknown field "Limit"`},
		{`{"limit":5,"instances":9,"":0}`, shared, `unknown field ""`},
		{`{"limit":5,"limit":6,"instances":9}`, shared, "limit stands twice"},
		{`{"limit":5,"l\u0069mit":6,"instances":9}`, shared, "limit stands twice"},
		{`{"limit":null,"instances":9}`, shared, "neither a number nor a text"},
		{`{"limit":true,"instances":9}`, shared, "neither a number nor a text"},
		{`{"limit":{"a":1},"instances":9}`, shared, "neither a number nor a text"},
		{`{"limit":[],"instances":9}`, shared, "neither a number nor a text"},
		{`{}`, shared, "limit is missing"},
		{`{"instances":9}`, shared, "limit is missing"},
		{`{"limit":5}`, shared, "instances is missing"},
		{`{"limit":5,"instances":9}`, -1, "index is missing"},
		{`{"limit":5,"instances":9,"index":4}`, 5, "index 4, but 5"},
		{`{"limit":5,"instances":9,"index":9}`, -1, "from 0 to 8"},
		{`{"limit":5,"instances":9}`, 9, "from 0 to 8"},
		{`{"limit":5,"instances":9,"index":-1}`, -1, "whole number from 0"},
		{`{"limit":5,"instances":9,"index":"3"}`, -1, "without quotes"},
		{`{"limit":5,"instances":0}`, shared, "from 1 to 1048576"},
		{`{"limit":5,"instances":1048577}`, shared, "from 1 to 1048576"},
		{`{"limit":5,"instances":"96"}`, shared, "without quotes"},
		{`{"limit":5,"instances":1e2}`, shared, "in digits"},
		{`{"limit":5.0,"instances":9}`, shared, "in digits"},
		{`{"limit":-5,"instances":9}`, shared, "from 0"},
		{`{"limit":1099511627777,"instances":9}`, shared, "from 0 to 1099511627776"},
		{`{"limit":1e400,"instances":9}`, shared, "in digits"},
		{`{"limit":99999999999999999999999,"instances":9}`, shared, "from 0"},
		{`{"limit":"500","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"-1/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"+1/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"1_000/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"1,000/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"5 /s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"1099511627777/s","instances":9}`, shared, `like "500/s"`},
		{`{"limit":"5/","instances":9}`, shared, "period"},
		{`{"limit":"5/1","instances":9}`, shared, "period"},
		{`{"limit":"5/week","instances":9}`, shared, "period"},
		{`{"limit":"5/+1s","instances":9}`, shared, "period"},
		{`{"limit":"5/-1s","instances":9}`, shared, "a window of -1s"},
		{`{"limit":"5/0s","instances":9}`, shared, "a window of 0s"},
		{`{"limit":"5/999us","instances":9}`, shared, "a window of 999µs"},
		{`{"limit":"5/367d","instances":9}`, shared, "a window of 8808h"},
		{`{"limit":"5/99999d","instances":9}`, shared, "period"},
		{`{"limit":"5/s","per":"1s","instances":9}`, shared, "leave per out"},
		{`{"limit":5,"per":1,"instances":9}`, shared, "per is a number"},
		{`{"limit":5,"per":"","instances":9}`, shared, "period"},
		{`{"limit":5,"instances":9}` + strings.Repeat(" ", 16<<10), shared, "more than 16384 bytes"},
		{`{"` + strings.Repeat("a", 10_000) + `":1}`, shared, "unknown field"},
		{`{"limit":` + strings.Repeat("9", 10_000) + `}`, shared, "whole number"},
		{strings.Repeat("[", 10_000), shared, "begins with"},
		{`{"limit":` + strings.Repeat("[", 10_000), shared, "neither a number"},
	} {
		plan, err := pace.ParseDocument([]byte(c.text), c.index)
		switch {
		case err == nil:
			t.Errorf("%.60q: it is read as %d/%v, %d of %d", c.text, plan.Limit, plan.Per, plan.Index, plan.Instances)
		case !errors.Is(err, schedule.ErrPlan):
			t.Errorf("%.60q: %v is no schedule.ErrPlan", c.text, err)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%.60q: got %v, want %q in it", c.text, err, c.want)
		case len(err.Error()) > 300:
			t.Errorf("%.60q: an error of %d bytes", c.text, len(err.Error()))
		}
	}
}

// TestParseDocumentCutShort: no truncated document is accepted.
func TestParseDocumentCutShort(t *testing.T) {
	const whole = `{"limit":"50000/1s","instances":96,"index":3}`
	for i := range len(whole) {
		if _, err := pace.ParseDocument([]byte(whole[:i]), -1); err == nil {
			t.Errorf("%s is read as a document", whole[:i])
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, text := range []string{
		`{"limit":"50000/s","instances":96}`, `{"limit":500,"per":"2s","instances":8,"index":3}`, `{"limit":0,"instances":1}`,
		`{"limit":"1/1d","instances":1,"index":0}`, `{"limit":5,"limit":6}`, `{"limit":5.0}`, `[]`, `{"index":-1}`,
	} {
		f.Add([]byte(text), 0)
		f.Add([]byte(text), -1)
	}
	f.Fuzz(func(t *testing.T, data []byte, index int) {
		plan, err := pace.ParseDocument(data, index)
		if err != nil {
			if !errors.Is(err, schedule.ErrPlan) || len(err.Error()) > 400 {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is read, and is no JSON", data)
		}
		again, err := schedule.Even(plan.Limit, plan.Per, plan.Instances, plan.Index)
		if err != nil || !again.Equal(plan) {
			t.Fatalf("%q: %d/%v, %d of %d is no plan: %v", data, plan.Limit, plan.Per, plan.Index, plan.Instances, err)
		}
	})
}
