package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	standard "log"

	"github.com/headgate/headgate/internal/config"
)

// answersTwice starts a service that answers each request twice.
func answersTwice(t *testing.T) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// TestStandardLogIsRedirected checks that the lines of net/http's transport are logged at
// level debug only, because the upstream decides how many lines there are.
func TestStandardLogIsRedirected(t *testing.T) {
	before := standard.Writer()
	var quiet bytes.Buffer
	restore := redirectStandardLog(newLog(&quiet, slog.LevelInfo, config.LogAuto))
	standard.Print("a line")
	restore()
	if quiet.Len() > 0 {
		t.Errorf("at the level info the log says %s", quiet.String())
	}
	lines, written := io.Pipe()
	restore = redirectStandardLog(newLog(written, slog.LevelDebug, config.LogAuto))
	defer restore()
	defer lines.Close()
	if standard.Writer() == before {
		t.Error("the standard log is not redirected")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("http://" + answersTwice(t))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var line struct {
		Level string `json:"level"`
		Text  string `json:"msg"`
	}
	if err := json.NewDecoder(lines).Decode(&line); err != nil || line.Level != "DEBUG" || line.Text == "" {
		t.Errorf("the log says %+v: %v", line, err)
	}
}

// TestLogFormat: a line that does not go to a terminal is JSON, unless log.format says text.
func TestLogFormat(t *testing.T) {
	for format, begin := range map[config.LogFormat]string{
		config.LogAuto: `{"time":`, config.LogJSON: `{"time":`, config.LogText: "time=",
	} {
		var out bytes.Buffer
		newLog(&out, slog.LevelInfo, format).Info("a line")
		if !bytes.HasPrefix(out.Bytes(), []byte(begin)) {
			t.Errorf("%s: got %s", format, out.String())
		}
	}
}
