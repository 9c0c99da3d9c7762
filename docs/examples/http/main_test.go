package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// This test runs the commands of the README over a socket.
func TestReadme(t *testing.T) {
	handler, err := guarded(t.Context(), "headgate.yaml", service())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer metrics(t, server.URL)
	for i, c := range []struct {
		path, client string
		status       int
		body         string
	}{
		{"/v1/product", "north", http.StatusOK, "sluice"},
		{"/v1/product", "north", http.StatusOK, "sluice"},
		{"/v1/product", "north", http.StatusTooManyRequests, "quota-exceeded"},
		{"/v1/product", "south", http.StatusOK, "sluice"},
		{"/v1/search", "north", http.StatusOK, "200 of 200"},
		{"/v1/search", "south", http.StatusOK, "200 of 200"},
		{"/v1/search", "north", http.StatusOK, "10 of 200"},
	} {
		status, body := get(t, server.URL+c.path, c.client)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("request %d, %s by %s: got %d %q, want %d with %q", i, c.path, c.client, status, body, c.status, c.body)
		}
	}
}

// metrics checks that the metrics count the refusal of the README.
func metrics(t *testing.T, url string) {
	t.Helper()
	const refused = `headgate_decisions_total{mode="enforce",reason="over_limit",rule="product",verdict="deny"} 1`
	if status, text := get(t, url+"/metrics", ""); status != http.StatusOK || !strings.Contains(text, refused) {
		t.Errorf("/metrics: got status %d without %s:\n%s", status, refused, text)
	}
}

func get(t *testing.T, url, client string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client-Id", client)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	retry := resp.Header.Get("Retry-After")
	if refused := resp.StatusCode == http.StatusTooManyRequests; refused != (retry != "") {
		t.Errorf("got status %d with Retry-After %q", resp.StatusCode, retry)
	}
	return resp.StatusCode, string(text)
}
