package embedded

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

// runKwok is kwok's main with a new global flag set, because kwok refuses to start
// with the flag --version of the Kubernetes packages. kwok reads its configuration
// flags from os.Args.
func runKwok(args []string) int {
	pflag.CommandLine = pflag.NewFlagSet(component.Kwok, pflag.ContinueOnError)
	os.Args = append([]string{component.Kwok}, args...)

	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok: cannot read its configuration:", err)
		return 1
	}
	cmd := kwok.NewCommand(ctx)
	cmd.PersistentFlags().AddFlagSet(flags)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}
