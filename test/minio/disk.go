package miniotest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// memory is the path of a file system in memory. Tests use it if at least minFree bytes are free.
const (
	memory  = "/dev/shm"
	minFree = 2 << 30
)

// Dir returns a new directory for the data of servers, which is removed with the test. For a test it is in memory if
// there is space, because a write there costs the servers a third less CPU time. For a benchmark it is on disk.
func Dir(tb testing.TB) string {
	tb.Helper()
	var stat syscall.Statfs_t
	_, measures := tb.(*testing.B)
	if err := syscall.Statfs(memory, &stat); measures || err != nil || stat.Bavail*uint64(stat.Bsize) < minFree {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "ekco-minio-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Disk is a disk in memory with a fixed size. It ends with its test. It needs root.
type Disk struct {
	tb  testing.TB
	dir string
}

// MountDisk mounts a disk of this size at a directory, and creates the directory if necessary.
func MountDisk(tb testing.TB, dir string, megabytes int) *Disk {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	d := &Disk{tb, dir}
	d.mount(0, megabytes)
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			tb.Errorf("unmount %s: %v", dir, err)
		}
	})
	return d
}

func (d *Disk) mount(flags uintptr, megabytes int) {
	d.tb.Helper()
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", flags, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		d.tb.Fatalf("mount a disk of %d MB, which only root can do: %v", megabytes, err)
	}
}

// Resize changes the size of the disk.
func (d *Disk) Resize(megabytes int) {
	d.tb.Helper()
	d.mount(syscall.MS_REMOUNT, megabytes)
}

// filler is the path of the file that [Disk.Fill] writes.
func (d *Disk) filler() string { return filepath.Join(d.dir, "filler") }

// Fill fills the free space, like another program would.
func (d *Disk) Fill() {
	d.tb.Helper()
	file, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.tb.Fatal(err)
	}
	defer file.Close()
	for block := 1 << 20; block >= 1<<12; {
		switch _, err := file.Write(make([]byte, block)); {
		case errors.Is(err, syscall.ENOSPC):
			block /= 16
		case err != nil:
			d.tb.Fatal(err)
		}
	}
}

// Empty removes the file that [Disk.Fill] wrote.
func (d *Disk) Empty() {
	d.tb.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.tb.Fatal(err)
	}
}
