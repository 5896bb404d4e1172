// Command image builds EKCO's image without a container engine. build.sh prepares its input and runs it; see README.md.
//
// It is a separate Go module, so that its dependencies are not dependencies of EKCO.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	// source is the directory of EKCO's module, out the directory of the results.
	source, out     string
	version, commit string
	created         time.Time
	// bases are the directories that base.sh made, by architecture.
	bases map[string]string
	// trees makes the command write the files of each image as a tar archive instead.
	trees bool
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	images, err := o.buildAll(ctx)
	if err != nil {
		return err
	}
	if o.trees {
		return o.writeTrees(images)
	}
	return o.write(images)
}

// buildAll builds for all architectures in parallel and returns the images sorted by architecture.
func (o options) buildAll(ctx context.Context) ([]built, error) {
	architectures := slices.Sorted(maps.Keys(o.bases))
	images, errs := make([]built, len(architectures)), make([]error, len(architectures))
	var all sync.WaitGroup
	for i, architecture := range architectures {
		all.Go(func() { images[i], errs[i] = o.build(ctx, architecture, o.bases[architecture]) })
	}
	all.Wait()
	return images, errors.Join(errs...)
}

var aVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+([.-][0-9A-Za-z.-]+)?$`)

func parse(args []string) (options, error) {
	o := options{bases: map[string]string{}}
	var created int64
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", ".", "`directory` of EKCO's module")
	flags.StringVar(&o.out, "out", "", "`directory` of the results")
	flags.StringVar(&o.version, "version", "", "EKCO's version, like v0.29.0")
	flags.StringVar(&o.commit, "commit", "", "the commit it is built from")
	flags.Int64Var(&created, "epoch", 0, "SOURCE_DATE_EPOCH: the commit's time in `seconds`")
	flags.BoolVar(&o.trees, "trees", false, "write the files of each image, for the Dockerfile")
	flags.Func("base", "`architecture=directory` that base.sh made; once for each architecture", func(value string) error {
		architecture, dir, ok := strings.Cut(value, "=")
		if !ok {
			return errors.New("want architecture=directory")
		}
		o.bases[architecture] = dir
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.created = epoch(created)
	switch {
	case !aVersion.MatchString(o.version):
		return o, fmt.Errorf("version %q is not like v0.29.0", o.version)
	case o.commit == "" || created <= 0:
		return o, errors.New("the commit or its time is not known: outside of a git work tree set GIT_SHA and SOURCE_DATE_EPOCH")
	case o.out == "" || len(o.bases) == 0:
		return o, errors.New("--out and --base are needed")
	}
	var err error
	o.out, err = filepath.Abs(o.out)
	return o, err
}
