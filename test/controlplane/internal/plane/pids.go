package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// supervisorName is the name of the supervisor itself in the pids file.
const supervisorName = "supervisor"

// running is the content of the pids file: the processes of a control plane,
// the supervisor first.
type running struct {
	Boot      string    `json:"boot"` // boot id of the machine when they were started
	Processes []started `json:"processes"`
}

// started identifies a process uniquely within one boot. The kernel reuses pids, but not with the same start time.
type started struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, as in /proc/PID/stat
}

func (d Dir) writePids(r running) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode the pids: %w", err)
	}
	// Rename the file into place, because 'down' may read it at any time.
	temporary := d.pids() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the pids: %w", err)
	}
	if err := os.Rename(temporary, d.pids()); err != nil {
		return fmt.Errorf("cannot write the pids: %w", err)
	}
	return nil
}

// readPids reads the pids file. It returns nothing if there is no file or if it is from before the machine's last boot.
func (d Dir) readPids() (running, error) {
	data, err := os.ReadFile(d.pids())
	if errors.Is(err, fs.ErrNotExist) {
		return running{}, nil
	}
	if err != nil {
		return running{}, fmt.Errorf("cannot read the pids: %w", err)
	}
	var r running
	if err := json.Unmarshal(data, &r); err != nil {
		return running{}, fmt.Errorf("cannot read the pids in %s: %w", d.pids(), err)
	}
	if r.Boot != bootID() {
		return running{}, nil
	}
	return r, nil
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func identify(name string, pid int) (started, error) {
	start, state, err := stat(pid)
	if err != nil || state == "Z" {
		return started{}, fmt.Errorf("%s (pid %d) has already ended", name, pid)
	}
	return started{Name: name, PID: pid, Start: start}, nil
}

// alive reports whether exactly this process still runs. A zombie does not run.
func (s started) alive() bool {
	start, state, err := stat(s.PID)
	return err == nil && start == s.Start && state != "Z"
}

// signal sends a signal to exactly this process: os.FindProcess pins the process that has the pid now, and then signal
// compares the start time. It returns no error if the process has ended.
func (s started) signal(sig syscall.Signal) error {
	p, err := os.FindProcess(s.PID)
	if err != nil {
		return fmt.Errorf("cannot look up %s (pid %d): %w", s.Name, s.PID, err)
	}
	defer func() { _ = p.Release() }()
	if !s.alive() {
		return nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send %s to %s (pid %d): %w", sig, s.Name, s.PID, err)
	}
	return nil
}

// stat reads the start time and the state from /proc/PID/stat. It counts fields after the program's name, which may
// contain spaces and parentheses.
func stat(pid int) (start uint64, state string, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", err
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	const stateField, startField = 0, 19
	if len(fields) <= startField {
		return 0, "", fmt.Errorf("/proc/%d/stat has %d fields after the name, want more than %d", pid, len(fields), startField)
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return start, fields[stateField], err
}
