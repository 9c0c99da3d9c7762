package acceptance

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// monthly is a configuration of a proxy with months of three kinds.
const monthly = `version: 1
store: redis://%s
store_timeout: 5s
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls, cost: "header:X-Cost"}
default_plan: free
plans:
  free: {time_zone: %s, quotas: {api_calls: [{limit: 200/month}]}}
customers:
  west: {time_zone: %s}
  fifteen: {time_zone: %s, month_starts: 15}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
` + adminAnywhere

// ownMonth is a customer whose months begin on a day of a zone. check gives its edges after words.
type ownMonth struct {
	customer, words, zone string
	day                   int
}

// edges gives the start of the month that contains at, and the next three.
func (m ownMonth) edges(t *testing.T, at time.Time) []time.Time {
	t.Helper()
	zone, err := time.LoadLocation(m.zone)
	if err != nil {
		t.Fatal(err)
	}
	local := at.In(zone)
	month := local.Month()
	if local.Day() < m.day {
		month--
	}
	var all []time.Time
	for i := range 4 {
		all = append(all, time.Date(local.Year(), month+time.Month(i), m.day, 0, 0, 0, 0, zone))
	}
	return all
}

// calm gives a time zone in which no month begins or ends while a test runs.
func calm(t *testing.T, day int, zones ...string) string {
	t.Helper()
	const margin = 10 * time.Minute
	for _, zone := range zones {
		m, now := ownMonth{zone: zone, day: day}, time.Now()
		if m.edges(t, now.Add(-margin))[0].Equal(m.edges(t, now.Add(margin))[0]) {
			return zone
		}
	}
	t.Fatalf("months begin in all of %v", zones)
	return ""
}

// TestMonths: the units of "200/month" are those of a month in the customer's time zone, from its own day on. The answers
// state the month's length and end. The count outlives the proxy. check prints the next three months.
func TestMonths(t *testing.T) {
	t.Parallel()
	plan, west, own := calm(t, 1, "Asia/Tokyo", "Asia/Kolkata"), calm(t, 1, "America/Los_Angeles", "America/New_York"),
		calm(t, 15, "Europe/Madrid", "Europe/Athens")
	path := file(t, fmt.Sprintf(monthly, testserver.Start(t).Addr, plan, west, own, upstreamOfQuotas(t)))
	months := []ownMonth{{"unlisted", "plan free", plan, 1}, {"west", `customer "west"`, west, 1}, {"fifteen", `customer "fifteen"`, own, 15}}
	i := launch(t, path)
	for _, m := range months {
		m.spendAll(t, i)
	}
	if err := i.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-i.ended
	i = launch(t, path)
	_, text, _ := call(t, "check", "--config", path)
	for _, m := range months {
		if status, _, _ := spend(t, i, m.customer, 1); status != http.StatusTooManyRequests {
			t.Errorf("%s, after a restart of the proxy: got %d, want 429", m.customer, status)
		}
		if want := m.line(t); !strings.Contains(text, want) {
			t.Errorf("check prints\n%s\nwant\n%s", text, want)
		}
	}
}

// spendAll uses up a month and checks the answers.
func (m ownMonth) spendAll(t *testing.T, i *instance) {
	t.Helper()
	for n, want := range []struct {
		cost, status int
		left         string
	}{{1, http.StatusOK, "199"}, {199, http.StatusOK, "0"}, {1, http.StatusTooManyRequests, "0"}} {
		began := time.Now()
		r, _ := get(t, "http://"+i.Proxy+"/", "X-Customer", m.customer, "X-Cost", strconv.Itoa(want.cost))
		if r.StatusCode != want.status {
			t.Errorf("%s, request %d: got %d, want %d", m.customer, n, r.StatusCode, want.status)
		}
		m.checkReply(t, r, began, want.left)
	}
}

// monthOf reads RateLimit-Policy and RateLimit.
var monthOf = regexp.MustCompile(`^"api[^"]*";q=200;w=(\d+) "api[^"]*";r=(\d+);t=(\d+)$`)

// checkReply checks the fields of an answer.
func (m ownMonth) checkReply(t *testing.T, r reply, began time.Time, left string) {
	t.Helper()
	e, ended := m.edges(t, began), time.Now()
	fields := monthOf.FindStringSubmatch(r.Header.Get("RateLimit-Policy") + " " + r.Header.Get("RateLimit"))
	if fields == nil {
		t.Fatalf("%s: the fields are %q and %q", m.customer, r.Header.Get("RateLimit-Policy"), r.Header.Get("RateLimit"))
	}
	if length := strconv.Itoa(int(e[1].Sub(e[0]).Seconds())); fields[1] != length || fields[2] != left {
		t.Errorf("%s: %s units left in a month of %s s, want %s in a month of %s s", m.customer, fields[2], fields[1], left, length)
	}
	ends := func(text string, bound float64) {
		seconds, err := strconv.ParseFloat(text, 64)
		least, most := min(bound, e[1].Sub(ended).Seconds()-1), min(bound, e[1].Sub(began).Seconds()+1)
		if err != nil || seconds < least || seconds > most {
			t.Errorf("%s: the month ends in %q s, want %.1f to %.1f s", m.customer, text, least, most)
		}
	}
	ends(fields[3], math.Inf(1))
	if r.StatusCode == http.StatusTooManyRequests {
		ends(r.Header.Get("Retry-After"), 86400) // retry_after_max
	}
}

// line gives what check prints.
func (m ownMonth) line(t *testing.T) string {
	t.Helper()
	var next []string
	for _, edge := range m.edges(t, time.Now())[1:] {
		next = append(next, edge.Format(time.RFC3339))
	}
	return m.words + ": the next windows of a month begin at " + strings.Join(next, ", ") + " (" + m.zone + ")\n"
}
