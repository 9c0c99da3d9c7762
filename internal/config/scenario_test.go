package config

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

var someTraffics = []string{"constant", "poisson", "retry"}

// TestScenario reads a scenario with every field.
func TestScenario(t *testing.T) {
	t.Parallel()
	s, err := ParseScenario("scenario.yaml", []byte(`
seed: 7
length: 2h
clients:
  - {name: web, number: 10, traffic: poisson, rate: 100/m}
  - name: batch
    number: 2
    keys: 30
    zipf: 1.1
    traffic: retry
    rate: 5/s
    jitter: true
    cost: 3
    duration: 40ms
    from: 10m
    until: 1h
    method: POST
    host: API.example.com:8080
    path: "/v1/x/../b%61tch?format=csv"
    headers: {x-client-id: "{key}", X-Plan: gold}
service: {cores: 8, connections: 16, cpu: 5ms, hold: 10ms, wait: 20ms, slow_from: 64, slow_by: 1, least_speed: 10}
`), someTraffics)
	if err != nil {
		t.Fatal(err)
	}
	if s.Seed != 7 || s.Length != 2*time.Hour || len(s.Clients) != 2 {
		t.Errorf("got %+v", s)
	}
	web, batch := &s.Clients[0], &s.Clients[1]
	if web.Number != 10 || web.Keys != 10 || web.Path != "/" || web.Method != http.MethodGet || web.Until != 2*time.Hour || web.Rate != (headgate.Limit{Count: 100, Per: time.Minute}) {
		t.Errorf("got %+v", web)
	}
	if batch.Keys != 30 || batch.Zipf != 1.1 || !batch.Jitter || batch.Cost != 3 || batch.Duration != 40*time.Millisecond || batch.From != 10*time.Minute ||
		batch.Until != time.Hour || batch.Method != http.MethodPost || batch.Host != "api.example.com" || batch.Path != "/v1/batch" || batch.Query != "format=csv" || len(batch.Headers) != 2 || batch.Headers[0] != [2]string{"X-Client-Id", "{key}"} {
		t.Errorf("got %+v", batch)
	}
	if want := (ScenarioService{8, 16, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 64, 1, 10}); *s.Service != want {
		t.Errorf("got %+v, want %+v", *s.Service, want)
	}
}

// TestScenarioFaults: each fault has its place and its correction.
func TestScenarioFaults(t *testing.T) {
	t.Parallel()
	const client = "{name: a, traffic: poisson, rate: 1/s"
	for text, want := range map[string]string{
		"":                                       "1:1: the file is empty: begin with length: 1h",
		"length: 1h":                             "clients: is missing: write groups of clients",
		"length: 1h\nclients: []":                "2:10: clients: is an empty list: write at least one entry",
		"length: 1h\nclients: [web]":             "2:11: clients[0]: must be fields, not",
		"length: 0s\nclients: [" + client + "}]": `1:9: length: "0s" is`,
		"length: 1h\ncolour: red\nclients: [" + client + "}]":                                           `2:1: field "colour" is not known: use one of seed, length, clients`,
		"length: 1h\nclients: [{name: a, traffic: noise, rate: 1/s}]":                                   `2:30: clients[0].traffic: "noise" is no kind of traffic: write one of constant, poisson, retry`,
		"length: 1h\nclients: [{name: a, traffic: poisson, rate: 5/day}]":                               `clients[0].rate: "5/day" is no rate: write 1 to 1000000000 requests`,
		"length: 1h\nclients: [{name: a, traffic: poisson}]":                                            "clients[0].rate: is missing: write how many requests each client sends",
		"length: 1h\nclients: [" + client + ", zipf: 1}]":                                               `clients[0].zipf: "1" is no exponent of a Zipf distribution`,
		"length: 1h\nclients: [" + client + ", from: 1h}]":                                              "2:11: clients[0]: the group sends nothing: it begins when it has ended",
		"length: 1h\nclients: [" + client + ", path: v1}]":                                              `clients[0].path: "v1" is no path: begin it with /`,
		"length: 1h\nclients: [" + client + "}, " + client + "}]":                                       `clients[1]: the name "a" is already used`,
		"length: 1h\nclients: [" + client + ", number: 2000000}]":                                       `clients[0].number: "2000000" is out of range: use 1 to 1000000`,
		"length: 1h\nclients: [" + client + ", keys: 1000000}, {name: b, traffic: poisson, rate: 1/s}]": "clients[1]: the groups have more than 1000000 keys together",
		"length: 1h\nclients: [" + client + ", headers: {'a b': c}}]":                                   "the header name",
		"length: 1h\nclients: [" + client + "}]\nservice: {hold: 5ms}":                                  "3:11: service.hold: has no effect without connections",
		"length: 1h\nclients: [" + client + "}]\nservice: fast":                                         "service: must be fields, not",
		"length: 1h\nclients: [" + strings.Repeat(client+"},", 1001) + "]":                              "clients: has 1001 entries: use at most 1000",
		"length: [": "a value is missing here",
		// What a front would refuse, or no rule would read.
		"length: 1h\nclients: [" + client + ", path: '/a;x=1/%2e%2e/%2Fb'}]":     `2:56: clients[0].path: "/a;x=1/%2e%2e/%2Fb" is a path that services read in different ways`,
		"length: 1h\nclients: [" + client + ", path: '/a%zz'}]":                  `clients[0].path: "/a%zz" has a broken escape`,
		"length: 1h\nclients: [" + client + ", host: 'a b'}]":                    `2:56: clients[0].host: "a b" is no host`,
		"length: 1h\nclients: [" + client + ", headers: {host: a.example.com}}]": "2:60: clients[0].headers.host: no rule reads the host as a header: write it as a field of the group, like host: a.example.com",
		"length: 1h\nclients: [" + client + ", headers: {x-a: b, X-A: c}}]":      `2:68: clients[0].headers.X-A: is the same header as "x-a": remove one`,
		"length: 1h\nclients: [" + client + ", headers: {a: \"b\\nc\"}}]":        `2:63: clients[0].headers.a: "b\nc" has a control character`,
		"length: 1h\nclients: [" + client + ", method: 'G T'}]":                  `2:58: clients[0].method: "G T" is no method`,
		"length: 1h\nclients: [" + client + ", until: 2h}]":                      "2:50: clients[0].until: is after the end of the run",
		"length: 1h\nclients: [" + client + ", jitter: true}]":                   "2:50: clients[0].jitter: has no effect with traffic: poisson: write traffic: retry",
		"length: 1h\nclients: [{name: '', traffic: poisson, rate: 1/s}]":         "2:18: clients[0].name: is empty: write a name",
	} {
		_, err := ParseScenario("scenario.yaml", []byte(text), someTraffics)
		faults := Faults(nil)
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// FuzzScenario: no text panics, and a scenario that is read keeps its bounds.
func FuzzScenario(f *testing.F) {
	for _, seed := range []string{
		"length: 1h\nclients: [{name: a, traffic: poisson, rate: 1/s, headers: {A: '{key}'}}]\nservice: {cpu: 1ms}", "length: &a 1h\nclients: *a", "a: b", "\x00", "clients: [[[",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseScenario("fuzz", text, someTraffics)
		if err != nil {
			return
		}
		keys := int64(0)
		for i := range s.Clients {
			g := &s.Clients[i]
			keys += g.Keys
			if g.Number < 1 || g.Keys < 1 || g.Rate.Count < 1 || g.Rate.Per <= 0 || g.From >= g.Until && g.From >= s.Length || len(g.Headers) > 20 {
				t.Errorf("%q gives %+v", text, g)
			}
		}
		if s.Length <= 0 || len(s.Clients) < 1 || len(s.Clients) > 1000 || keys > 1_000_000 {
			t.Errorf("%q gives %d groups with %d keys", text, len(s.Clients), keys)
		}
	})
}
