package proxy

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// family returns the process ids of the process and of its children, such as the workers of
// nginx.
func (p *process) family() ([]int, error) {
	pid := p.cmd.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pid))
	if err != nil {
		return nil, fmt.Errorf("proxy: find the children of %s: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
	}
	pids := []int{pid}
	for child := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// processorTime returns the processor time of the process and its children, including their
// ended threads. A child that ends takes its time with it.
func (p *process) processorTime() (time.Duration, error) {
	select {
	case <-p.ended:
		return 0, fmt.Errorf("proxy: %s: %w\nThe log of the process ends with:\n%s", p.name, errEnded, p.logged())
	default:
	}
	pids, err := p.family()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range pids {
		used, err := processorTime(pid)
		if err != nil {
			return 0, fmt.Errorf("proxy: read the processor time of %s: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
		}
		sum += used
	}
	return sum, nil
}

// processorTime reads the clock of a process. /proc/PID/stat has the same value, but only in
// hundredths of a second.
func processorTime(pid int) (time.Duration, error) {
	const schedulerClock = 2
	var used unix.Timespec
	// The complement of the process id selects the kernel's CPU clock of the process.
	if err := unix.ClockGettime(^int32(pid)<<3|schedulerClock, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Nano()), nil
}

// resident returns the resident memory of the process and its children in bytes, or 0 when it
// is unknown. Pages that several processes share count for each of them.
func (p *process) resident() uint64 {
	pids, err := p.family()
	if err != nil {
		return 0
	}
	var sum uint64
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			return 0
		}
		pages, err := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
		if err != nil {
			return 0
		}
		sum += pages * uint64(os.Getpagesize())
	}
	return sum
}
