package http2

// maxWindow is the largest window (RFC 9113, section 6.9.1).
const maxWindow = 1<<31 - 1

// leastUpdate is how many bytes a WINDOW_UPDATE frame gives back, unless the client would wait for fewer.
const leastUpdate = 4 << 10

// inflow is the window that a client has to send.
type inflow struct {
	left   int32 // bytes that the client may send
	unsent int32 // bytes that the next WINDOW_UPDATE gives back
}

// add gives n bytes back. It returns how many bytes to put into a WINDOW_UPDATE now.
func (f *inflow) add(n int) (send uint32) {
	f.unsent += int32(n)
	if f.unsent < leastUpdate && f.unsent < f.left || f.unsent == 0 {
		return 0
	}
	n = int(f.unsent)
	f.left += f.unsent
	f.unsent = 0
	return uint32(n)
}

// take notes that the client has sent n bytes. It returns false if the client had a smaller window.
func (f *inflow) take(n uint32) bool {
	if f.left < 0 || n > uint32(f.left) {
		return false
	}
	f.left -= int32(n)
	return true
}

// grow adds to a window for sending. It returns false if the window is then too large.
func grow(window *int32, n int32) bool {
	sum := int64(*window) + int64(n)
	if sum > maxWindow {
		return false
	}
	*window = int32(sum)
	return true
}
