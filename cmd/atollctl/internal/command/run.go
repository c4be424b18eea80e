// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
)

// Run runs the command line args, whose first element is the program's name, and returns the exit
// code. It prints results to out and everything else to errOut. If ctx ends while an operation is
// not committed, Run aborts the operation, which may take some more seconds.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	s := &session{in: in, out: out, errOut: errOut, getenv: os.Getenv, now: time.Now, terminal: isTerminal(errOut)}
	return s.execute(ctx, args)
}

func (s *session) execute(ctx context.Context, args []string) int {
	s.program = "atollctl"
	if len(args) > 0 {
		if base := filepath.Base(args[0]); strings.HasPrefix(base, "kubectl-atoll") {
			s.program = "kubectl atoll"
		}
		args = args[1:]
	}
	root := s.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code, remedy := s.classify(ctx, err)
	fmt.Fprintf(s.errOut, "error: %s\n", oneLine(err))
	if remedy != "" {
		fmt.Fprintf(s.errOut, "remedy: %s\n", remedy)
	}
	return code
}

// session is one run: its streams, its flags and the resources that it opened.
type session struct {
	in          io.Reader
	out, errOut io.Writer
	program     string // as the user calls it
	getenv      func(string) string
	now         func() time.Time
	cleanup     time.Duration // Cleanup of the Coordinator; zero: its default
	lease       time.Duration // LeaseTimeout of the Coordinator; zero: its default
	terminal    bool          // errOut is a terminal

	kubeconfigs []string
	contexts    []string
	config      string
	wal         string
	createWAL   bool
	shared      string // --log: the log of a central plane
	timeout     time.Duration
	output      string
	wide        bool // output is a table with all columns
	verbose     bool

	steps   sync.Mutex
	started bool  // the command line was valid and the command began
	peers   peers // connections, if the command made any
}

const exitCodes = `Exit codes:
  0  done; if some peers have yet to confirm, a warning names them
  1  failed: an operation has no effect, unless the error says that it was in
     effect for a while; a leftover in an unreachable peer has no effect, and a
     sweep deletes it
  2  wrong input, wrong cluster or ring, or a peer that lacks a type, grants too
     few rights or was not named: no operation began; the error names the remedy
  3  conflict: another object has the name, the object changed or is in use, or
     the operation is committed or belongs to another coordinator
  4  not finished or not known: in doubt, committed and waiting until other
     objects or finalizers are gone, or a peer could not be read
  5  audit found violations, or account compare found differences`

func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "atollctl",
		Short: "ServiceClusters and Accounts in all peers, or in none",
		Long: `atollctl adds and removes ServiceClusters and Accounts in all peers or in none,
finishes operations that an earlier run left open, and audits the peers.

Name the peers with --context NAME=CONTEXT or --kubeconfig NAME=PATH, once for
each, or with --config FILE. Without these flags atollctl reads the file that
ATOLL_CONFIG names, else $XDG_CONFIG_HOME/atoll/peers.yaml (~/.config/atoll).
A context is one of your own kubeconfig (KUBECONFIG or ~/.kube/config), which may
run credential plugins, as with kubectl. Other kubeconfigs may not.
Commands that change something write a log first. A run that was killed is
finished by the next such run, or by "wal recover", with the same --wal. With
--log the log is in a central plane and shared by several coordinators: if the
coordinator of an operation has no heartbeat for a lease, any other one finishes
the operation. The peers decide whether it is committed, as with a file.

` + exitCodes,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: s.program},
		PersistentPreRunE: func(*cobra.Command, []string) error { return s.checkFlags() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput("", "%w", err) })

	flags := root.PersistentFlags()
	flags.StringArrayVar(&s.kubeconfigs, "kubeconfig", nil, "a peer and its kubeconfig, as `name=path`; repeat it for each peer")
	flags.StringArrayVar(&s.contexts, "context", nil, "a peer and the context of your kubeconfig, as `name=context`, or one name for both;\nrepeat it for each peer")
	flags.StringVar(&s.config, "config", "", "`file` that lists the peers, their regions and kubeconfigs")
	flags.StringVar(&s.wal, "wal", "", "`file` of the log of operations (default one for each ring,\n$XDG_STATE_HOME/atoll/rings/RING/operations.db, or below ~/.local/state)")
	flags.BoolVar(&s.createWAL, "create-wal", false, "begin a log where --wal names none, instead of exiting with 2")
	flags.StringVar(&s.shared, "log", "", "instead of --wal: the log of a central plane that several coordinators share,\nas `kube:kubeconfig`")
	flags.DurationVar(&s.timeout, "timeout", time.Minute, "how long the whole command may take")
	flags.StringVarP(&s.output, "output", "o", formatTable, "table, wide, json, yaml or name")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "print each step of the protocol, and log lines, to standard error")
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return s.contextNames(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))

	root.AddCommand(
		s.installCRDs(), s.rbac(), s.peersCommand(), s.doctorCommand(), s.peerCommand(), s.route(), s.explainRoute(), s.get(), s.watch(),
		s.serviceCluster(), s.account(), s.cluster(), s.placement(), s.operationCommand(), s.walCommand(), s.audit(), s.version(),
	)
	for _, c := range root.Commands() {
		refuseStray(c)
	}
	s.illustrate(root, examples())
	return root
}

// refuseStray makes c return an error for a call without a known subcommand, if c only groups
// subcommands.
func refuseStray(c *cobra.Command) {
	if !c.HasSubCommands() {
		return
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return badInput("see "+c.CommandPath()+" --help", "%s needs a command", c.CommandPath())
		}
		return badInput("see "+c.CommandPath()+" --help", "%s has no command %q", c.CommandPath(), args[0])
	}
}

func (s *session) checkFlags() error {
	if err := checkFormat(s.output); err != nil {
		return err
	}
	if s.output == formatWide {
		s.output, s.wide = formatTable, true
	}
	if s.shared != "" && s.wal != "" {
		return badInput("use one of them", "--wal and --log both name a log")
	}
	if s.timeout <= 0 {
		return badInput("give a duration such as 30s", "--timeout is %s and must be positive", s.timeout)
	}
	return nil
}

// run returns a cobra function that calls f with the timeout of --timeout.
func (s *session) run(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		s.started = true
		ctx, cancel := context.WithTimeout(c.Context(), s.timeout)
		defer cancel()
		return f(logr.NewContext(ctx, s.logger()), args)
	}
}

// logger returns a logger that prints the library's errors, and with --verbose also its lines of
// verbosity 0.
func (s *session) logger() logr.Logger {
	level := slog.LevelError
	if s.verbose {
		level = slog.LevelInfo
	}
	return logr.FromSlogHandler(slog.NewTextHandler(s.errOut, &slog.HandlerOptions{Level: level}))
}

func (s *session) warn(format string, args ...any) {
	fmt.Fprintf(s.errOut, "warning: "+format+"\n", args...)
}

// oneArg returns an error that shows the usage, unless args has exactly one element.
func oneArg(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return badInput("see "+c.CommandPath()+" --help", "%d arguments are given, want 1: %s", len(args), c.UseLine())
}
