package fields_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// TestReported: a header and a trailer reach the stages; the private one leaves the answer. Of a
// header and a trailer with one name, the trailer counts.
func TestReported(t *testing.T) {
	h := http.Header{"X-Work": {"1", "9"}, "X-Own": {"2"}, "X-Other": {"3"}}
	r := fields.Report(guard.Facts{Answer: []string{"X-Work", "X-Own", "X-Missing"}, Private: []string{"X-Work"}})
	r.Take(fields.Map(h))
	if len(h) != 2 || h.Get("X-Own") != "2" || h.Get("X-Other") != "3" {
		t.Errorf("the answer has %v", h)
	}
	h[http.TrailerPrefix+"X-Work"] = []string{"4"}
	r.Take(fields.Map(h))
	got := map[string]string{}
	for _, name := range []string{"X-Work", "X-Own", "X-Missing", "X-Other"} {
		if value, ok := r.Lookup()(name); ok {
			got[name] = value
		}
	}
	if !maps.Equal(got, map[string]string{"X-Work": "4", "X-Own": "2"}) || len(h) != 2 {
		t.Errorf("stages read %v, and the answer has %v", got, h)
	}
	for sent, want := range map[string]string{
		"X-Work": "", "X-Sum, x-work": "X-Sum", " X-work ,X-Sum,X-Other": "X-Sum,X-Other", "X-Sum, X-Other": "X-Sum, X-Other",
	} {
		announced := http.Header{"Trailer": {sent}}
		if r.Take(fields.Map(announced)); announced.Get("Trailer") != want || (want == "") != (len(announced) == 0) {
			t.Errorf("a service announces %q, and the client sees %v, want %q", sent, announced, want)
		}
	}
	none := fields.Report(guard.Facts{})
	if none.Take(fields.Map(h)); none.Lookup() != nil || len(h) != 2 {
		t.Error("without stages, something is read")
	}
}
