package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/plane"
)

// upFlags has the flags of the command up.
type upFlags struct {
	dir       string
	primaries int
	workers   int
	pods      int
	podGrace  int
	scale     bool
	portBase  string
	exec      string
	detach    bool
	detached  bool // this process is the supervisor that --detach started
}

func newUp() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a control plane; stop it with Ctrl-C, or with down after --detach",
		Long: "up starts a control plane in DIR, which must be new, empty, or of an earlier control plane\n" +
			"(whose data is removed). Progress goes to standard error. When everything is ready, the line\n" +
			"KUBECONFIG=DIR/kubeconfig goes to standard output. In the foreground, the control plane stops on\n" +
			"SIGINT and SIGTERM, and when the process that started it ends in any way.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUp(cmd, f) },
	}
	dirFlag(cmd, &f.dir)
	cmd.Flags().IntVar(&f.primaries, "primaries", 3, "number of primary nodes")
	cmd.Flags().IntVar(&f.workers, "workers", 3, "number of worker nodes")
	cmd.Flags().IntVar(&f.pods, "pods", 0, "number of pods of the Deployment demo/demo, spread over the workers")
	cmd.Flags().IntVar(&f.podGrace, "pod-grace-seconds", 1, "terminationGracePeriodSeconds of these pods")
	cmd.Flags().BoolVar(&f.scale, "scale", false, "for 100 to 5000 nodes: more parallel requests, and node checks every 2 s")
	cmd.Flags().StringVar(&f.portBase, "port-base", "auto", "first of five consecutive ports, or auto for free ones")
	cmd.Flags().StringVar(&f.exec, "exec-handler", "", "program to run for each exec into a pod (absolute path); without it exec is refused")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "return when everything is ready and leave the control plane running")
	cmd.Flags().BoolVar(&f.detached, "detached", false, "")
	_ = cmd.Flags().MarkHidden("detached") // fails only for an unknown flag
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}

func runUp(cmd *cobra.Command, f upFlags) error {
	ctx, cancel := untilSignal(cmd)
	defer cancel()
	options, err := f.options(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	switch {
	case f.detach:
		return runDetach(ctx, cmd, f, options)
	case f.detached:
		return runDetached(ctx, options)
	default:
		return runForeground(ctx, cmd, options)
	}
}

func (f upFlags) options(progress io.Writer) (plane.Options, error) {
	dir, err := absolute(f.dir)
	if err != nil {
		return plane.Options{}, err
	}
	for name, n := range map[string]int{"--primaries": f.primaries, "--workers": f.workers, "--pods": f.pods, "--pod-grace-seconds": f.podGrace} {
		if n < 0 {
			return plane.Options{}, fmt.Errorf("%s is %d: use 0 or more", name, n)
		}
	}
	if f.pods > 0 && f.workers == 0 {
		return plane.Options{}, errors.New("--pods need --workers to run on")
	}
	base, err := parsePortBase(f.portBase)
	if err != nil {
		return plane.Options{}, err
	}
	if err := checkProgram(f.exec); err != nil {
		return plane.Options{}, err
	}
	return plane.Options{
		Dir: dir, Primaries: f.primaries, Workers: f.workers,
		Pods: f.pods, Grace: time.Duration(f.podGrace) * time.Second,
		Scale: f.scale, PortBase: base, Exec: f.exec, Progress: progress,
	}, nil
}

// parsePortBase parses the first port. It returns 0 for "auto".
func parsePortBase(s string) (int, error) {
	if s == "auto" {
		return 0, nil
	}
	const highest = 65535 - 4
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > highest {
		return 0, fmt.Errorf("--port-base is %q: use auto or a port from 1 to %d", s, highest)
	}
	return n, nil
}

// checkProgram returns an error unless path is "" or the absolute path of a program.
func checkProgram(path string) error {
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		return fmt.Errorf("--exec-handler is %q: use an absolute path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot use --exec-handler: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("--exec-handler %s is not an executable file", path)
	}
	return nil
}

func runForeground(ctx context.Context, cmd *cobra.Command, o plane.Options) error {
	ctx, stop := plane.WithParent(ctx)
	defer stop()
	return plane.Run(ctx, o, func() { printKubeconfig(cmd, o.Dir) })
}

func runDetach(ctx context.Context, cmd *cobra.Command, f upFlags, o plane.Options) error {
	args := []string{
		"up", "--detached", "--dir", string(o.Dir),
		"--primaries", strconv.Itoa(f.primaries), "--workers", strconv.Itoa(f.workers),
		"--pods", strconv.Itoa(f.pods), "--pod-grace-seconds", strconv.Itoa(f.podGrace),
		"--port-base", f.portBase, "--scale=" + strconv.FormatBool(f.scale), "--exec-handler", f.exec,
	}
	if err := plane.Detach(ctx, args, o.Progress); err != nil {
		return err
	}
	printKubeconfig(cmd, o.Dir)
	return nil
}

// runDetached reports the progress to the process that started it, while that process listens.
func runDetached(ctx context.Context, o plane.Options) error {
	progress := os.NewFile(plane.ProgressFD, "progress")
	defer func() { _ = progress.Close() }()
	o.Progress = progress
	err := plane.Run(ctx, o, func() {
		_, _ = fmt.Fprintln(progress, plane.ReadyLine)
		_ = progress.Close()
	})
	if err != nil {
		_, _ = fmt.Fprintln(progress, err)
	}
	return err
}

func printKubeconfig(cmd *cobra.Command, dir plane.Dir) {
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "KUBECONFIG=%s\n", dir.Kubeconfig())
}
