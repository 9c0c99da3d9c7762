package redisclients_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// patience is longer than any answer takes, on a busy machine.
const patience = time.Minute

// asker sends commands together, and gives the answers as text.
type asker func(t *testing.T, commands ...[]string) []string

// goRedis is a client of go-redis.
func goRedis(t *testing.T, at string, version int) asker {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: at, Protocol: version, ClientName: "test", ReadTimeout: patience, WriteTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	return func(t *testing.T, commands ...[]string) (answers []string) {
		t.Helper()
		all, _ := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for _, words := range commands {
				p.Do(t.Context(), list(words)...)
			}
			return nil
		})
		for _, command := range all {
			got, err := command.(*redis.Cmd).Result()
			if err != nil {
				got = err
			}
			answers = append(answers, show(got))
		}
		return answers
	}
}

func list(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

// rueidisClient is a client of rueidis.
func rueidisClient(t *testing.T, at string, version int) asker {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{at}, DisableCache: true, ClientName: "test", AlwaysRESP2: version == 2, ConnWriteTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return func(t *testing.T, commands ...[]string) (answers []string) {
		t.Helper()
		all := make(rueidis.Commands, 0, len(commands))
		for _, words := range commands {
			all = append(all, client.B().Arbitrary(words...).Build())
		}
		for _, answer := range client.DoMulti(t.Context(), all...) {
			got, err := answer.ToAny()
			if err != nil {
				got = fmt.Errorf("ERR %w", err) // rueidis drops this word.
			}
			answers = append(answers, show(got))
		}
		return answers
	}
}

// redisCLI is redis-cli, which sends a command when the one before is answered.
func redisCLI(t *testing.T, at string, version int) asker {
	t.Helper()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, commands ...[]string) (answers []string) {
		t.Helper()
		var input strings.Builder
		for _, words := range commands {
			input.WriteString(strings.Join(words, " ") + "\n")
		}
		command := exec.CommandContext(t.Context(), "redis-cli", "-p", port, fmt.Sprint("-", version), "--json")
		command.Stdin = strings.NewReader(input.String())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli: %v: run make deps\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			text, isError := strings.CutPrefix(line, "error:")
			got := decodeJSON(t, text)
			if isError {
				got = fmt.Errorf("%v", got)
			}
			answers = append(answers, show(got))
		}
		return answers
	}
}

// nodeRedis is testdata/client.js, with the packages of docs/examples/node.
func nodeRedis(t *testing.T, at string, version int) asker {
	t.Helper()
	packages, err := filepath.Abs(filepath.Join("..", "..", "..", "docs", "examples", "node", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "client.js"), at, fmt.Sprint(version))
	command.Env = append(os.Environ(), "NODE_PATH="+packages)
	command.Stderr = os.Stderr
	input, wrong := command.StdinPipe()
	output, err := command.StdoutPipe()
	if err := errors.Join(err, wrong, command.Start()); err != nil {
		t.Fatalf("node: %v: run make deps", err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	answered := bufio.NewReader(output)
	return func(t *testing.T, commands ...[]string) (answers []string) {
		t.Helper()
		if err := json.NewEncoder(input).Encode(commands); err != nil {
			t.Fatal(err)
		}
		line, err := answered.ReadString('\n')
		if err != nil {
			t.Fatalf("node ends: %v", err)
		}
		for _, got := range decodeJSON(t, line).([]any) {
			if m, ok := got.(map[string]any); ok && m["error"] != nil {
				got = fmt.Errorf("%v", m["error"])
			}
			answers = append(answers, show(got))
		}
		return answers
	}
}

func decodeJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}
