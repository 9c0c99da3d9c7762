package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/console/merge"
)

// Bounds of merged answers.
const (
	maxLive      = 64 << 10
	maxHistory   = 256 << 10
	defaultRules = 50
	defaultTop   = 100
	maxTop       = 1024
)

// recorder keeps the answer of the own instance.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(text []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(text) //nolint:wrapcheck // It never fails.
}

// own reads what the instance itself answers to a query. Otherwise it passes the failure on, and reports false.
func own[T any](w http.ResponseWriter, r *http.Request, inner http.HandlerFunc, query url.Values, into *T) bool {
	asked := r.Clone(r.Context())
	query.Del(admin.Local)
	asked.URL.RawQuery = query.Encode()
	answer := &recorder{header: http.Header{}}
	inner(answer, asked)
	if answer.code == http.StatusOK && json.Unmarshal(answer.body.Bytes(), into) == nil {
		return true
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body.Bytes())
	return false
}

// members gives the instances as the poller of a caller knows them.
func (c *Component) members(w http.ResponseWriter, r *http.Request, sort string, live *admin.Live) ([]merge.Member, []string, bool) {
	authorization, err := authorizationOf(r, c.o.Config().Admin.PeersTokenFile)
	if err != nil {
		calls.Fail(c.o.Host.Log, w, calls.Unavailable(err))
		return nil, nil, false
	}
	p := c.poller(pollKey{sort, authorization})
	if p == nil {
		calls.Fail(c.o.Host.Log, w, calls.Failed(admin.Failure{
			Code: admin.CodeUnavailable, Error: "too many callers read the fleet at a time: close a console, or ask with local=1",
		}, http.StatusServiceUnavailable))
		return nil, nil, false
	}
	select {
	case <-p.first:
	case <-r.Context().Done():
		return nil, nil, false
	}
	all, problems := p.members(live, c.o.Address(), time.Now())
	return all, problems, true
}

// live answers GET /api/v1/live for the fleet.
func (c *Component) live(w http.ResponseWriter, r *http.Request, inner http.HandlerFunc) {
	query := r.URL.Query()
	limit, failure := calls.PageSize(query.Get("limit"), defaultRules, listed)
	if failure != nil {
		calls.Fail(c.o.Host.Log, w, failure)
		return
	}
	query.Set("limit", strconv.Itoa(listed))
	var now admin.Live
	if !own(w, r, inner, query, &now) {
		return
	}
	sort := query.Get("sort")
	if sort == "" {
		sort = "refused"
	}
	members, problems, known := c.members(w, r, sort, &now)
	if !known {
		return
	}
	merged := merge.OfLive(&now, members, sort, limit)
	for _, text := range problems {
		fault := admin.Attention{Level: "fault", About: "instance", Name: "admin.peers", Text: text}
		merged.Attention = slices.Insert(merged.Attention, 0, fault)
		merged.AttentionTotal++
	}
	writeBounded(w, merged)
}

// writeBounded sends a document with fewer entries, if it has more than maxLive bytes.
func writeBounded(w http.ResponseWriter, l *admin.Live) {
	for {
		text, err := json.Marshal(l)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if len(text) < maxLive || len(l.Rules)+len(l.Clients)+len(l.Attention)+len(l.Marks) == 0 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(append(text, '\n')) // The client may be gone.
			return
		}
		l.Rules, l.Clients = l.Rules[:len(l.Rules)/2], l.Clients[:len(l.Clients)/2]
		l.Attention, l.Marks, l.Stores = l.Attention[:len(l.Attention)/2], l.Marks[:len(l.Marks)/2], l.Stores[:len(l.Stores)/2]
	}
}

// fanned asks the peers that are OK for a page, and gives their answers. Instances has all of them, and why some are not in the answer.
func fanned[T any](ctx context.Context, c *Component, w http.ResponseWriter, r *http.Request, page string) (
	answers []admin.From[T], instances []admin.LiveInstance, known bool,
) {
	own := &admin.Live{Instance: c.o.Host.Name(c.o.Config()), Now: time.Now(), Started: c.o.Started.UTC()}
	members, _, known := c.members(w, r, "refused", own)
	if !known {
		return nil, nil, false
	}
	authorization, _ := authorizationOf(r, c.o.Config().Admin.PeersTokenFile) // members has read it.
	select {
	case c.fanned <- struct{}{}:
		defer func() { <-c.fanned }()
	case <-ctx.Done():
		return nil, nil, false
	}
	peers, _ := c.directory.current(ctx, &c.o.Config().Admin, time.Now())
	got := make([]*T, len(members))
	places := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for i := range members {
		m := &members[i]
		for _, p := range peers {
			if i == 0 || !m.OK || p.address != m.Address {
				continue
			}
			places <- struct{}{}
			asking.Go(func() {
				defer func() { <-places }()
				value := new(T)
				if _, err := p.get(ctx, page, authorization, min(maxAnswer, maxAnswers/int64(len(peers))), value); err != nil {
					m.OK, m.Error = false, causeOf(err)
					return
				}
				got[i] = value
			})
		}
	}
	asking.Wait()
	for i := range members {
		instances = append(instances, members[i].LiveInstance)
		if got[i] != nil {
			answers = append(answers, admin.From[T]{Instance: members[i].Name, Address: members[i].Address, Answer: *got[i]})
		}
	}
	return answers, instances, true
}

// history answers GET /api/v1/history for the fleet.
func (c *Component) history(w http.ResponseWriter, r *http.Request, inner http.HandlerFunc) {
	query := r.URL.Query()
	var now admin.History
	if !own(w, r, inner, query, &now) {
		return
	}
	query.Set(admin.Local, "1")
	answers, instances, known := fanned[admin.History](r.Context(), c, w, r, "/api/v1/history?"+query.Encode())
	if !known {
		return
	}
	others := make([]*admin.History, 0, len(answers))
	for i := range answers {
		others = append(others, &answers[i].Answer)
	}
	merged := merge.OfHistory(&now, others, query["series"])
	merged.Instances = instances
	text, err := json.Marshal(merged)
	if err != nil || len(text) >= maxHistory {
		calls.Fail(c.o.Host.Log, w, calls.BadRequest("the answer has more than 256 KiB: name fewer series, or a later since"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

// fleetTop is the answer of GET /api/v1/top for a fleet.
type fleetTop struct {
	merge.Top

	Instances []admin.LiveInstance `json:"instances"`
}

// top answers GET /api/v1/top for the fleet.
func (c *Component) top(w http.ResponseWriter, r *http.Request, inner http.HandlerFunc) {
	query := r.URL.Query()
	n, failure := calls.PageSize(query.Get("top"), defaultTop, maxTop)
	if failure != nil {
		calls.Fail(c.o.Host.Log, w, failure)
		return
	}
	query.Set("top", strconv.Itoa(maxTop)) // The most refused keys of all instances may be further down in each.
	var now admin.Top
	if !own(w, r, inner, query, &now) {
		return
	}
	query.Set(admin.Local, "1")
	answers, instances, known := fanned[admin.Top](r.Context(), c, w, r, "/api/v1/top?"+query.Encode())
	if !known {
		return
	}
	answers = append(answers, admin.From[admin.Top]{Instance: instances[0].Name, Answer: now})
	calls.WriteJSON(c.o.Host.Log, w, fleetTop{merge.OfTop(answers, n), instances})
}

// fleetBans is the answer of GET /api/v1/bans for a fleet.
type fleetBans struct {
	merge.Bans

	Instances []admin.LiveInstance `json:"instances"`
}

// bans answers GET /api/v1/bans for the fleet.
func (c *Component) bans(w http.ResponseWriter, r *http.Request, inner http.HandlerFunc) {
	var now admin.Bans
	if !own(w, r, inner, r.URL.Query(), &now) {
		return
	}
	answers, instances, known := fanned[admin.Bans](r.Context(), c, w, r, "/api/v1/bans?"+admin.Local+"=1")
	if !known {
		return
	}
	answers = append(answers, admin.From[admin.Bans]{Instance: instances[0].Name, Answer: now})
	calls.WriteJSON(c.o.Host.Log, w, fleetBans{merge.OfBans(answers), instances})
}
