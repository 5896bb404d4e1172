package s3

import "fmt"

// Drive is a directory in which a server stores its part of the data.
type Drive struct {
	// Host is the name of the server in the store. It is empty for a single server.
	Host string
	// Works is set if the drive exists and is not being restored. Otherwise the other fields may be
	// wrong.
	Works bool
	// Set is the number of the pool and the number of the erasure set in the pool. Each object is spread over the
	// drives of one set.
	Set [2]int
	// Total and Free are the bytes of the drive's file system. Other drives may share the file system.
	Total, Free uint64
	// Device identifies the file system on its machine. It is empty for old servers, which do not report it.
	Device string
}

// reservedPercent is the part of a file system that EKCO leaves free. With less than 15 percent free, a kubelet with
// default settings evicts pods from the node, and MinIO is the first.
const reservedPercent = 20

// usable returns the bytes of the drive's file system that EKCO may fill.
func (d Drive) usable() uint64 {
	reserve := d.Total / 100 * reservedPercent
	if d.Free < reserve {
		return 0
	}
	return d.Free - reserve
}

// fileSystem returns an identity of the drive's file system. If the server reports no device, file systems of the
// same size on one machine count as one.
func (d Drive) fileSystem(machine string) string {
	if d.Device != "" {
		return machine + " " + d.Device
	}
	return fmt.Sprint(machine, " of ", d.Total)
}

// bytesPerVersion is the approximate size of a version on each drive without its content: a directory and a file.
const bytesPerVersion = 8 << 10

// SpaceFor returns the space, in the unit of [Server.Room], that a number of versions with a total number of content
// bytes needs.
func (s Server) SpaceFor(versions, bytes int64) uint64 {
	drives := 1
	for _, set := range s.sets() {
		drives = max(drives, set.drives-s.Parity)
	}
	return uint64(max(bytes, 0)) + uint64(max(versions, 0))*bytesPerVersion*uint64(drives)
}

// Room returns how many bytes of content the store can take. It assumes that all drives fill evenly, and leaves
// reservedPercent of each file system free. Drives on one file system share its space. The function machine returns
// the machine of a host, because several hosts may be on one machine.
func (s Server) Room(machine func(host string) string) uint64 {
	sharing := make(map[string]uint64)
	for _, d := range s.Drives {
		sharing[d.fileSystem(machine(d.Host))]++
	}
	room := uint64(0)
	for _, set := range s.sets() {
		least, known := uint64(0), false
		for _, d := range set.work {
			// The drive with the least usable space limits its set.
			if share := d.usable() / sharing[d.fileSystem(machine(d.Host))]; !known || share < least {
				least, known = share, true
			}
		}
		room += least * uint64(max(set.drives-s.Parity, 0))
	}
	return room
}

// erasureSet is a group of drives. Each object is spread over the drives of one set.
type erasureSet struct {
	drives int
	work   []Drive
}

func (s Server) sets() map[[2]int]erasureSet {
	sets := make(map[[2]int]erasureSet)
	for _, d := range s.Drives {
		one := sets[d.Set]
		one.drives++
		if d.Works {
			one.work = append(one.work, d)
		}
		sets[d.Set] = one
	}
	return sets
}
