package httplimit_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestRefusalsNameTheirDecision: a refusal of HTTP and of gRPC has the name of its line in the decision log. Other answers, and those of
// a program without Instance, have none.
func TestRefusalsNameTheirDecision(t *testing.T) {
	for name, c := range map[string]struct {
		instance string
		fields   http.Header
	}{
		"http": {"eu-1", http.Header{}},
		"grpc": {"eu-1", http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}},
		"none": {"", http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			counted := report.New(report.Config{Log: slog.New(slog.NewJSONHandler(&out, nil)), Instance: "eu-1"})
			g := oneAnHour(t, counted)
			h := httplimit.New(g, httplimit.Options{Instance: c.instance})(http.NotFoundHandler())
			var got []string
			for range 2 {
				r := httptest.NewRequest(http.MethodPost, "/v1/x", http.NoBody)
				r.Header = c.fields
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				got = append(got, w.Header().Get(guard.DecisionField))
			}
			counted.Close()
			var line struct {
				Decision string `json:"decision"`
				Path     string `json:"path"`
			}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Path != "/v1/x" || line.Decision == "" {
				t.Fatalf("%v in %q", err, out.String())
			}
			want := line.Decision
			if c.instance == "" {
				want = ""
			}
			if got[0] != "" || got[1] != want {
				t.Errorf("the answers have %q, want none and %q", got, want)
			}
		})
	}
}

// oneAnHour returns a guard that admits one request an hour.
func oneAnHour(t *testing.T, counted *report.Report) *guard.Guard {
	t.Helper()
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "a", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
	}}}
	c.Observer = counted.FollowConfig(&c)
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
