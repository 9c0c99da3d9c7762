package script_test

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis/script"
)

func BenchmarkTmp(b *testing.B) {
	files, _ := filepath.Glob("/tmp/hgv/*.lua")
	for _, f := range files {
		b.Run(filepath.Base(f), func(b *testing.B) {
			text, _ := os.ReadFile(f)
			s := newStore(b, newClient(b, testserver.Start(b).Addr), 1, nil)
			s.decide = script.Script{Text: string(text), SHA: fmt.Sprintf("%x", sha1.Sum(text))}
			newScene(b, s, []headgate.Policy{{Limit: headgate.Limit{Count: 100, Per: time.Second}}}, 1).decide(b)
		})
	}
}
func TestDump(t *testing.T) {
	os.WriteFile("/tmp/hgv/full.lua", []byte(script.Decide().Text), 0o644)
}
