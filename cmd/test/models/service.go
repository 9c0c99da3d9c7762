package models

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 1 << 20

// A call is a request to one of the APIs.
type call struct {
	way    Way
	usage  Usage
	w      http.ResponseWriter
	r      *http.Request
	fields fields
}

// fields are those of all APIs that change the answer.
type fields struct {
	Model         string `json:"model"`
	Stream        *bool  `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	EncodingFormat string `json:"encoding_format"`
}

// A Service answers as the APIs do.
type Service struct {
	mu    sync.Mutex
	calls map[string]int
	left  map[string]time.Time
}

// Serve starts a service on a port of the loopback interface, for HTTP/1.1 and HTTP/2 without TLS.
func Serve() (*Service, *httptest.Server) {
	s := &Service{calls: map[string]int{}, left: map[string]time.Time{}}
	server := httptest.NewUnstartedServer(s)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	return s, server
}

// Calls gives the number of requests that have named a model.
func (s *Service) Calls(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[model]
}

// Left gives the time at which the client of a Long stream has left before its end.
func (s *Service) Left(model string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.left[model]
	return at, ok
}

// ServeHTTP answers with the API that the path names.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{w: w, r: r}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &c.fields)
	}
	answer, model := apiOf(r.URL.Path)
	if model == "" {
		model = c.fields.Model
	}
	way, ok := wayOf(model)
	if answer == nil || err != nil || !ok {
		http.Error(w, "unknown path or model", http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.calls[model]++
	s.mu.Unlock()
	c.way, c.usage = way.accepted(r), UsageOf(model)
	if way.End == Failed {
		c.json(http.StatusInternalServerError, failure())
		return
	}
	if !answer(c) {
		s.mu.Lock()
		s.left[model] = time.Now()
		s.mu.Unlock()
	}
}

// failure is an error that all SDKs read.
func failure() object {
	const words = "no capacity"
	inner := object{"message": words, "type": "server_error", "code": http.StatusInternalServerError}
	return object{"type": "error", "message": words, "error": inner}
}

// apiOf gives what answers a path, and the model that the path names. The answer reports false if the client has left.
func apiOf(path string) (answer func(*call) bool, model string) {
	switch path {
	case "/v1/chat/completions":
		return chat, ""
	case "/v1/responses":
		return responses, ""
	case "/v1/embeddings":
		return embeddings, ""
	case "/v1/messages":
		return messages, ""
	case "/api/chat":
		return ollama, ""
	case "/v2/chat":
		return cohere, ""
	}
	if rest, ok := strings.CutPrefix(path, "/v1beta/models/"); ok {
		model, method, _ := strings.Cut(rest, ":")
		if method == "streamGenerateContent" {
			return geminiStream, model
		}
		return gemini, model
	}
	if rest, ok := strings.CutPrefix(path, "/model/"); ok {
		model, method, _ := strings.Cut(rest, "/")
		if method == "converse-stream" {
			return converseStream, model
		}
		return converse, model
	}
	return nil, ""
}

type (
	object = map[string]any
	array  = []any
)

// encode gives the JSON of an answer. Its parts are made of texts and numbers, for which Marshal does not fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

func (c *call) streams() bool { return c.fields.Stream != nil && *c.fields.Stream }

// json answers with one document.
func (c *call) json(status int, document any) bool {
	o := newWire(c.w, c.r, c.way, "application/json", status)
	o.event(encode(document))
	o.end()
	return true
}

// sse begins a stream of server-sent events.
func (c *call) sse() *wire {
	return newWire(c.w, c.r, c.way, "text/event-stream; charset=utf-8", http.StatusOK)
}

// sse adds an event. Name may be empty.
func (o *wire) sse(name string, data any) bool {
	event := ""
	if name != "" {
		event = "event: " + name + "\n"
	}
	return o.event([]byte(event + "data: " + string(encode(data)) + "\n\n"))
}
