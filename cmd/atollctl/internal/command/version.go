// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (s *session) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
			}
			if s.output == formatTable || s.output == formatName {
				_, err := fmt.Fprintln(s.out, version)
				return err
			}
			return s.print(listing{items: []item{{object: object("Version", version, map[string]any{})}}, single: true})
		},
	}
}
