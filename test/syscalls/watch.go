package syscalls

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a system call that is about to be made.
type Call struct {
	// Name is the name of the call: "pwrite", "ftruncate", "fsync" (also for fdatasync), "rename", "link" or "unlink".
	Name string
	// Path is the file of the call. To is the new name.
	Path, To string
}

// String formats the call, with the base names of files.
func (c Call) String() string {
	if c.To == "" {
		return c.Name + " " + filepath.Base(c.Path)
	}
	return c.Name + " " + filepath.Base(c.Path) + " to " + filepath.Base(c.To)
}

var names = map[uint32]string{
	unix.SYS_PWRITE64: "pwrite", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fsync",
	unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename", unix.SYS_LINKAT: "link",
	unix.SYS_UNLINKAT: "unlink",
}

// Watch passes every such call of this process to see, one after the other. If see returns an error number, the call
// fails with it; zero lets the call continue. see itself must make none of these calls.
func Watch(see func(Call) unix.Errno) error {
	listener, err := install()
	if err != nil {
		return fmt.Errorf("watch system calls: %w", err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return fmt.Errorf("watch system calls: %w", err)
	}
	go func() {
		for answer(listener, memory, see) == nil {
		}
	}()
	return nil
}

// install makes the kernel ask the listener about the calls of every thread.
func install() (listener int, err error) {
	var program []unix.SockFilter
	load := func(offset uint32) {
		program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	answer := func(action uint32) {
		program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
	}
	load(0) // the call's number
	for number := range names {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1})
		answer(unix.SECCOMP_RET_USER_NOTIF)
	}
	answer(unix.SECCOMP_RET_ALLOW)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// question and reply are the kernel's struct seccomp_notif and seccomp_notif_resp.
type question struct {
	id         uint64
	pid, flags uint32
	number     uint32
	arch       uint32
	ip         uint64
	arguments  [6]uint64
}

type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// answer waits for a call and answers it.
func answer(listener int, memory *os.File, see func(Call) unix.Errno) error {
	var asked question
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err != nil {
		return ignoreInterrupt(err)
	}
	said := reply{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if errno := see(callOf(asked, memory)); errno != 0 {
		said = reply{id: asked.id, errno: -int32(errno)}
	}
	return ignoreInterrupt(ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&said)))
}

// ignoreInterrupt returns nil if a signal interrupted this thread, or the thread that made the call; that thread
// repeats the call.
func ignoreInterrupt(err error) error {
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}

func callOf(asked question, memory *os.File) Call {
	call := Call{Name: names[asked.number]}
	switch call.Name {
	case "rename", "link":
		call.Path, call.To = text(memory, asked.arguments[1]), text(memory, asked.arguments[3])
	case "unlink":
		call.Path = text(memory, asked.arguments[1])
	default:
		call.Path, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", asked.arguments[0]))
	}
	return call
}

// text reads a C string.
func text(memory *os.File, at uint64) string {
	var all []byte
	for b := make([]byte, 1); ; at++ {
		if _, err := memory.ReadAt(b, int64(at)); err != nil || b[0] == 0 {
			return string(all)
		}
		all = append(all, b[0])
	}
}
