//go:build soak

package acceptance

import "testing"

// TestSoakRedisProtocolFull fills connections in all ways, without TLS and with it. Each way has a server of its own, with the garbage
// that headgate check counts, so that the peak of its resident memory shows what a connection takes. Then clients of all kinds
// stay until the server closes their connections.
func TestSoakRedisProtocolFull(t *testing.T) {
	for _, secure := range []bool{false, true} {
		name := "without TLS"
		if secure {
			name = "with TLS"
		}
		t.Run(name, func(t *testing.T) {
			for _, kind := range fullClients() {
				t.Run(kind.name, func(t *testing.T) { fillOneKind(t, &kind, secure) })
			}
			t.Run("all kinds until the server closes", func(t *testing.T) { fillAllKinds(t, secure) })
		})
	}
}

// fillOneKind has many clients of one kind, that leave.
func fillOneKind(t *testing.T, kind *fullClient, secure bool) {
	t.Helper()
	const clients, garbage = 100, 1.12
	f := startFull(t, clients+10, secure, "GOGC=12")
	all := new(fillers)
	all.join(t, f, kind, clients)
	each := f.fills(t, all, kind.sips())
	f.judge(t, each)
	resident := float64(peak(t, f.command.Process.Pid)-f.peaked) / clients
	all.leave()
	t.Logf("%d connections: %.0f KiB each without garbage, %.0f KiB of peak resident memory", clients, each/1024, resident/1024)
	if resident > f.most*garbage {
		t.Errorf("a connection takes %.0f KiB of resident memory, want at most %.0f", resident/1024, f.most*garbage/1024)
	}
	f.emptied(t, patience)
}

// fillAllKinds has 50 clients of each kind, that never leave.
func fillAllKinds(t *testing.T, secure bool) {
	t.Helper()
	const clients = 50
	kinds := fullClients()
	f := startFull(t, clients*len(kinds), secure)
	all := new(fillers)
	for _, kind := range kinds {
		all.join(t, f, &kind, clients)
	}
	each := f.fills(t, all, 0)
	f.judge(t, each)
	f.emptied(t, 4*patience)
	peaked, most := peak(t, f.command.Process.Pid), memoryOfCheck(t, f.path)
	t.Logf("%d connections of %d kinds: %.0f KiB each without garbage; peak resident memory %d MiB, before %d MiB, and check prints %d MiB",
		clients*len(kinds), len(kinds), each/1024, peaked>>20, f.peaked>>20, most>>20)
	if peaked > most {
		t.Errorf("the server took %d MiB, and check prints %d MiB", peaked>>20, most>>20)
	}
	all.leave()
}
