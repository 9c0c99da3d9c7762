package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// manyGroups and groupLeaves are the branches and the leaves of each branch in treeConfiguration.
const manyGroups, groupLeaves = 100, 100

// treeConfiguration has a tree with 10,000 leaves. Each version has other limits.
func treeConfiguration(version int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nmax_memory: 64MiB\nrules: []\nserver: {grpc: \"127.0.0.1:0\", http: \"off\"}\ndomains:\n  shop:\n    descriptors:\n")
	for g := range manyGroups {
		fmt.Fprintf(&b, "    - key: group\n      value: group-%d\n      descriptors:\n", g)
		for l := range groupLeaves {
			fmt.Fprintf(&b, "      - {key: leaf, value: leaf-%d, limits: %d/365d}\n", l, leafLimit(version, g, l))
		}
	}
	b.WriteString(adminAnywhere)
	return b.Bytes()
}

func leafLimit(version, group, leaf int) int {
	return 100_000_000 + 1_000_000*version + group*groupLeaves + leaf
}

// leafOf is a request for leaf n of all leaves.
func leafOf(n int) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{
		Entries: []*commonv3.RateLimitDescriptor_Entry{
			{Key: "group", Value: fmt.Sprint("group-", n/groupLeaves)}, {Key: "leaf", Value: fmt.Sprint("leaf-", n%groupLeaves)},
		},
	}}}
}

// leafLoad calls for all leaves in turns.
var leafLoad = serverLoad{connections: 4, workers: 4, pause: time.Millisecond, request: func(worker, n int) *ratelimitv3.RateLimitRequest {
	return leafOf((2503*worker + 7*n) % (manyGroups * groupLeaves))
}}

// leafLimitOf gives the limit that is in force for leaf n.
func leafLimitOf(t *testing.T, client ratelimitv3.RateLimitServiceClient, n int) int {
	t.Helper()
	answer, err := client.ShouldRateLimit(t.Context(), leafOf(n))
	if err != nil {
		t.Fatal(err)
	}
	return int(answer.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit())
}

// TestServerReloadsManyLeaves reloads a tree with 10,000 leaves under load. No call fails. A faulty file
// changes nothing, and the log has its line. TestSoakServerReloadsManyLeaves bounds the time of calls.
func TestServerReloadsManyLeaves(t *testing.T) { reloadLeaves(t, 3, patience) }

// reloadLeaves reloads a tree some times. most bounds the time that the server takes for 99% of the calls
// meanwhile.
func reloadLeaves(t *testing.T, reloads int, most time.Duration) {
	t.Helper()
	i := launchServer(t, file(t, string(treeConfiguration(0))))
	client := rateLimitClient(t, i.GRPC)
	measured(t, i, leafLoad, "quiet", func() { <-time.After(500 * time.Millisecond) })
	versions := make([][]byte, reloads)
	for version := range versions {
		versions[version] = treeConfiguration(version + 1)
	}
	elapsed := measured(t, i, leafLoad, "reloads", func() {
		for version, text := range versions {
			replace(t, i.path, text)
			if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
			eventually(t, "the new limits", func() bool { return leafLimitOf(t, client, 4242) == leafLimit(version+1, 42, 42) })
		}
	})
	t.Logf("%d reloads take %v", reloads, reloadTimes(t, i))
	if elapsed > most {
		t.Errorf("the server takes up to %v for 99%% of the calls, want %v at most", elapsed, most)
	}

	text := treeConfiguration(reloads + 1)
	const line = 5000
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[line-1] = bytes.Replace(lines[line-1], []byte("/365d"), []byte("/365x"), 1)
	succeed(t, leafLoad.run(t, i.GRPC, func() {
		replace(t, i.path, bytes.Join(lines, nil))
		i.hangup(t)
	}))
	want := &faultLine{At: ":" + strconv.Itoa(line) + ":" + strconv.Itoa(bytes.Index(lines[line-1], []byte("365x"))+4), Problem: `"365x" has the unknown unit`}
	if !tells(faultLines(t, i), want) {
		t.Errorf("the log lacks %+v: %+v", want, faultLines(t, i))
	}
	if got, want := leafLimitOf(t, client, 4242), leafLimit(reloads, 42, 42); got != want {
		t.Errorf("after a faulty file the limit is %d, want the last good one, %d", got, want)
	}
}

// measured runs a load, checks that no call fails, and logs how long calls take for the client. It gives
// the time that the server takes for 99% of the calls. The clients share the cores with the reload, so
// they also wait for the processor.
func measured(t *testing.T, i *instance, load serverLoad, name string, during func()) time.Duration {
	t.Helper()
	const calls = `ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le="`
	before := histogram(t, i, calls)
	all := load.run(t, i.GRPC, during)
	succeed(t, all)
	served := histogram(t, i, calls).since(before).percentile(99)
	t.Logf("%s: %d calls, 99%% within %v, all within %v; the server takes at most %v for 99%%", name, len(all), slowest(all, 99), slowest(all, 100), served)
	return served
}

// mergedFile is one file of a domain in many files. Each has one branch.
func mergedFile(version, group, leaves int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: shop\ndescriptors:\n  - key: group\n    value: group-%d\n    descriptors:\n", group)
	for l := range leaves {
		fmt.Fprintf(&b, "      - {key: leaf, value: leaf-%d, rate_limit: {unit: year, requests_per_unit: %d}}\n", l, leafLimit(version, group, l))
	}
	return b.String()
}

// TestServerMergesManyFiles follows the files of one domain with MERGE_DOMAIN_CONFIG, under load.
// TestSoakServerMergesManyFiles bounds the time of calls.
func TestServerMergesManyFiles(t *testing.T) { mergeFiles(t, 1000, patience) }

// mergeFiles follows a number of files. All change at once, by a new target of a link, as in Kubernetes. most
// bounds the time that the server takes for 99% of the calls meanwhile.
func mergeFiles(t *testing.T, files int, most time.Duration) {
	t.Helper()
	root := t.TempDir()
	write := func(version int) string {
		dir := filepath.Join(t.TempDir(), fmt.Sprint("version-", version))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for n := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%05d.yaml", n)), []byte(mergedFile(version, n, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	link := func(dir string) {
		fresh := filepath.Join(root, ".fresh")
		if err := os.Symlink(dir, fresh); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, filepath.Join(root, "config")); err != nil {
			t.Fatal(err)
		}
	}
	link(write(0))
	next := write(1)
	i := launchRatelimit(t, testserver.Start(t), "RUNTIME_ROOT="+root, "RUNTIME_WATCH_ROOT=false", "MERGE_DOMAIN_CONFIG=true")
	client := rateLimitClient(t, i.GRPC)
	last := files - 1
	request := leafLoad
	request.request = func(worker, n int) *ratelimitv3.RateLimitRequest { return leafOf((worker + 7*n) % files * groupLeaves) }
	eventually(t, "the first limits", func() bool { return leafLimitOf(t, client, last*groupLeaves) > 0 })
	measured(t, i, request, "quiet", func() { <-time.After(500 * time.Millisecond) })
	elapsed := measured(t, i, request, "changed files", func() {
		began := time.Now()
		link(next)
		eventually(t, "the changed files", func() bool { return leafLimitOf(t, client, last*groupLeaves) == leafLimit(1, last, 0) })
		t.Logf("%d files are in force after %v", files, time.Since(began).Round(time.Millisecond))
	})
	if elapsed > most {
		t.Errorf("the server takes up to %v for 99%% of the calls, want %v at most", elapsed, most)
	}

	faulty := filepath.Join(next, "file-00042.yaml")
	replace(t, faulty, []byte(strings.Replace(mergedFile(2, 42, 1), "unit: year", "unit: eon", 1)))
	eventually(t, "the fault in the log", func() bool { return strings.Contains(i.text(), "file-00042.yaml:6") })
	if got, want := leafLimitOf(t, client, 42*groupLeaves), leafLimit(1, 42, 0); got != want {
		t.Errorf("after a faulty file the limit is %d, want the last good one, %d", got, want)
	}
}

// launchRatelimit runs headgate server --envoy-env on free ports and a Redis.
func launchRatelimit(t *testing.T, redis *testserver.Server, variables ...string) *instance {
	t.Helper()
	command := exec.Command(binary, "server", "--envoy-env")
	command.Env = append(append(os.Environ(), "HEADGATE_STORE_TIMEOUT=10s", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr, "HOST=127.0.0.1", "PORT=0", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0",
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT=0", "USE_STATSD=false", "LOG_LEVEL=INFO", "LOG_FORMAT=json", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0",
		"HEADGATE_ADMIN_HEALTH=127.0.0.1:0", "HEADGATE_STORE_TIMEOUT=10s"), variables...)
	return serve(t, "", command)
}
