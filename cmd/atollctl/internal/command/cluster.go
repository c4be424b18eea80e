// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/join"
)

func (s *session) cluster() *cobra.Command {
	c := &cobra.Command{
		Use:     "cluster",
		Aliases: []string{"clusters"},
		Short:   "Let a cluster join an upstream with a token that can be used once",
	}
	c.AddCommand(s.clusterToken(), s.clusterManifests())
	return c
}

func (s *session) clusterToken() *cobra.Command {
	var upstream, server string
	var opts join.TokenOptions
	c := &cobra.Command{
		Use:   "token SYNCTARGET --upstream KUBECONFIG",
		Short: "Print a kubeconfig with a token with which one cluster can join once",
		Long: `Print a kubeconfig with a token with which one cluster can join the upstream once,
as this SyncTarget. The syncer of the cluster exchanges it for a short client
certificate, which it renews. The token can do nothing else, and expires unused
after --lifetime. The output is a secret until then.

Before the first token, apply what "cluster manifests" prints, and run an approver
(atoll-manager with clusters.join).`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			api, cluster, err := openUpstream(upstream)
			if err != nil {
				return err
			}
			opts.Server, opts.CA = cluster.Server, cluster.CertificateAuthorityData
			if server != "" {
				opts.Server = server
			}
			kubeconfig, err := join.NewToken(ctx, api, args[0], opts)
			if err != nil {
				return s.noToken(err, opts.Namespace)
			}
			_, err = s.out.Write(kubeconfig)
			return err
		}),
	}
	c.Flags().StringVar(&upstream, "upstream", "", "`kubeconfig` of the upstream; required")
	c.Flags().StringVar(&server, "server", "", "`address` of the upstream as the cluster reaches it (default that in --upstream)")
	c.Flags().StringVar(&opts.Namespace, "namespace", join.Namespace, "`namespace` of tokens")
	c.Flags().DurationVar(&opts.Lifetime, "lifetime", time.Hour, "how long the token can be used: 10m to 24h")
	return c
}

// noToken returns err with a remedy. err is the error of an attempt to make a token. If it comes neither from an API server
// nor from the connection to one, an argument is wrong.
func (s *session) noToken(err error, namespace string) error {
	switch {
	case apierrors.IsNotFound(err):
		return &problem{code: exitInput, err: err, remedy: "apply what " + s.program + " cluster manifests prints"}
	case apierrors.IsForbidden(err):
		return &problem{code: exitInput, err: err, remedy: "grant create of serviceaccounts and serviceaccounts/token in the namespace " + namespace}
	case apierrors.ReasonForError(err) == "" && region.CauseOf(err) == region.CauseUnknown:
		return badInput("see "+s.program+" cluster token --help", "%w", err)
	}
	return err
}

func (s *session) clusterManifests() *cobra.Command {
	var namespace string
	c := &cobra.Command{
		Use:   "manifests",
		Short: "Print what an upstream needs before clusters can join with tokens",
		Args:  cobra.NoArgs,
		RunE: s.run(func(context.Context, []string) error {
			for _, object := range join.Manifests(namespace) {
				text, err := yaml.Marshal(object)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(s.out, "---\n%s", text); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	c.Flags().StringVar(&namespace, "namespace", join.Namespace, "`namespace` of tokens")
	return c
}

// openUpstream returns clients of the upstream, and the cluster in its kubeconfig. It does no network I/O.
func openUpstream(path string) (region.API, *clientcmdapi.Cluster, error) {
	if path == "" {
		return nil, nil, badInput("use --upstream KUBECONFIG", "no upstream is given")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, badInput("", "--upstream: read kubeconfig: %w", err)
	}
	credentials, err := region.ParseKubeconfig(data, region.Trust{})
	if err != nil {
		return nil, nil, badInput(flatten, "--upstream: kubeconfig %s: %w", path, err)
	}
	conn, err := region.NewConn(region.Peer{Name: "upstream", Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return nil, nil, badInput(flatten, "--upstream: kubeconfig %s: %w", path, err)
	}
	parsed, err := clientcmd.Load(data) // only its cluster is used; ParseKubeconfig has checked that there is one
	if err != nil {
		return nil, nil, badInput(flatten, "--upstream: kubeconfig %s: %w", path, err)
	}
	for _, cluster := range parsed.Clusters {
		return conn, cluster, nil
	}
	return nil, nil, badInput(flatten, "--upstream: kubeconfig %s has no cluster", path)
}
