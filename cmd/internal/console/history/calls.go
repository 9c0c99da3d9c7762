package history

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/console/history/ring"
)

// Bounds of GET /api/v1/history.
const (
	maxSeries     = 100
	maxSeriesName = 256
	maxHistory    = 256 << 10
)

// live answers GET /api/v1/live. Without peers, local changes nothing.
func (c *Component) live(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	q := query{sort: values.Get("sort"), plain: access.MayAdminister(r.Context())}
	if q.sort == "" {
		q.sort = "refused"
	}
	if _, known := ordersTable[q.sort]; !known {
		calls.Fail(c.o.Host.Log, w, calls.BadRequest("sort must be refused, passed or name"))
		return
	}
	failure := localOf(values.Get("local"))
	if failure == nil {
		q.limit, failure = calls.PageSize(values.Get("limit"), defaultRules, maxRules)
	}
	if failure != nil {
		calls.Fail(c.o.Host.Log, w, failure)
		return
	}
	text, err := c.answer(q)
	if err != nil {
		calls.Fail(c.o.Host.Log, w, calls.Unavailable(err))
		return
	}
	write(w, text)
}

// localOf checks the parameter by which an instance asks another one for what it knows itself.
func localOf(text string) *calls.Failure {
	if text != "" && text != "0" && text != "1" {
		return calls.BadRequest("local must be 1, which asks this instance alone, or 0")
	}
	return nil
}

// write sends a document that no cache keeps.
func write(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) // The client may be gone.
}

// history answers GET /api/v1/history.
func (c *Component) history(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	names := values["series"]
	failure := localOf(values.Get("local"))
	tier, known := ring.ParseTier(values.Get("tier"))
	if values.Get("tier") == "" {
		tier, known = ring.Second, true
	}
	since, err := strconv.ParseInt(values.Get("since"), 10, 64)
	if values.Get("since") == "" {
		since, err = 0, nil
	}
	switch {
	case failure != nil:
	case len(names) == 0 || len(names) > maxSeries:
		failure = calls.BadRequest("name 1 to " + strconv.Itoa(maxSeries) + " series, like series=requests&series=rule.NAME.refused")
	case !known:
		failure = calls.BadRequest("tier must be 1s, 10s or 5m")
	case err != nil || since < 0:
		failure = calls.BadRequest("since must be a time in Unix seconds, like 1790000000")
	case c.o.Series == 0:
		failure = calls.Failed(admin.Failure{Code: admin.CodeNotFound, Error: admin.NoHistory}, http.StatusNotFound)
	}
	for _, name := range names {
		if len(name) > maxSeriesName && failure == nil {
			failure = calls.BadRequest("a name of a series has more than " + strconv.Itoa(maxSeriesName) + " bytes")
		}
	}
	if failure != nil {
		calls.Fail(c.o.Host.Log, w, failure)
		return
	}
	plain := access.MayAdminister(r.Context())
	text, err := encode(c.History(names, tier, since, plain))
	if err != nil {
		calls.Fail(c.o.Host.Log, w, calls.BadRequest(err.Error()))
		return
	}
	write(w, text)
}

// longError says that an answer has more than maxHistory bytes.
type longError struct{}

func (longError) Error() string {
	return "the answer has more than 256 KiB: name fewer series, or a later since"
}

func encode(h *admin.History) ([]byte, error) {
	text, err := json.Marshal(h)
	if err == nil && len(text) >= maxHistory {
		err = longError{}
	}
	return append(text, '\n'), err
}

// History gives the steps of series since a time.
func (c *Component) History(names []string, tier ring.Tier, since int64, plain bool) *admin.History {
	now := c.o.Config()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sampler
	start, n := s.ring.Span(tier, since)
	h := &admin.History{Instance: c.o.Host.Name(now), Start: start, Step: int(tier.Step()), Series: make(map[string][]*float64, len(names))}
	asked := s.named(names, &shown{plain: plain, part: clientPart(now), names: c.o.Sources.Report.KeyNames()})
	var steps []int64
	for i, name := range names {
		steps = s.ring.Read(steps[:0], asked[i], tier, start, n)
		values, numbers := make([]*float64, n), make([]float64, n)
		for k, v := range steps {
			if v != ring.NoData {
				numbers[k] = float64(v)
				values[k] = &numbers[k]
			}
		}
		h.Series[name] = values
	}
	return h
}

// clientPrefix begins the names of the series of clients.
const clientPrefix = "client."

// named gives the names of series in the ring: callers that may not administer know clients by other names.
func (s *sampler) named(names []string, to *shown) []string {
	if to.plain {
		return names
	}
	var byShown map[string]string
	own := make([]string, len(names))
	for i, name := range names {
		own[i] = name
		rest, of := strings.CutPrefix(name, clientPrefix)
		dot := strings.LastIndexByte(rest, '.')
		if !of || dot < 0 {
			continue
		}
		if byShown == nil {
			byShown = make(map[string]string, len(s.clients.all))
			for _, one := range s.clients.all {
				byShown[cut(one.shownTo(to))] = one.name
			}
		}
		own[i] = "" // No series has this name.
		if client, known := byShown[rest[:dot]]; known {
			own[i] = clientPrefix + client + rest[dot:]
		}
	}
	return own
}
