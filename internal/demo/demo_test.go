package demo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDue(t *testing.T) {
	for _, c := range []struct {
		due   func(time.Duration) int
		after time.Duration
		want  int
	}{
		{steady(20), 0, 0},
		{steady(20), 49 * time.Millisecond, 0},
		{steady(20), 50 * time.Millisecond, 1},
		{steady(20), time.Minute, 1200},
		{bursts(80, 5*time.Second), 0, 80},
		{bursts(80, 5*time.Second), 5*time.Second - 1, 80},
		{bursts(80, 5*time.Second), 5 * time.Second, 160},
	} {
		if got := c.due(c.after); got != c.want {
			t.Errorf("due after %v is %d, want %d", c.after, got, c.want)
		}
	}
}

// half is a proxy that refuses every second request.
func half(t *testing.T) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 4 {
		case 0:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"violated-policies":["clients"]}`)
		default:
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func show(t *testing.T, terminal bool) (string, *Client) {
	t.Helper()
	upstream, err := StartUpstream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := upstream.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := config.Parse(Rules())
	if err != nil {
		t.Fatal(err)
	}
	client := &Client{Name: "shop", ID: "shop", Path: "/v1/product", Demand: "100 at once", Due: bursts(100, time.Hour)}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err = Run(ctx, Options{
		Proxy: half(t), Admin: "127.0.0.1:1", Upstream: upstream, Rules: c.Rules, Clients: []*Client{client},
		Out: &out, Terminal: terminal, Every: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), client
}

func TestLines(t *testing.T) {
	text, client := show(t, false)
	if n := client.Count(); n.Sent != 100 || n.Admitted != 50 || n.Refused != 25 || n.Failed != 25 || n.Why["clients"] != 25 {
		t.Errorf("counts %+v", n)
	}
	for _, want := range []string{
		"limits    clients 50/1s; product 60/2s, 250/10s", "  shop 50/100", "clients 25, failed 25", "the clients asked 100 times",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("lines for a log have codes of a terminal in them")
	}
}

func TestTable(t *testing.T) {
	text, _ := show(t, true)
	if n := strings.Count(text, "\x1b[2A\x1b[J"); n < 2 {
		t.Errorf("the table is drawn again %d times, want 2 or more:\n%q", n, text)
	}
}
