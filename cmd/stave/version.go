package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// buildVersion is what the binary says of itself.
type buildVersion struct {
	Version        string `json:"version"`
	Go             string `json:"go"`
	Platform       string `json:"platform"`
	FeatureLevel   uint32 `json:"feature_level"`
	SnapshotFormat uint8  `json:"snapshot_format"`
	ExportFormat   uint32 `json:"export_format"`
}

func readVersion() buildVersion {
	v := buildVersion{
		Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		FeatureLevel: uint32(catalog.CurrentLevel), SnapshotFormat: snapshots.Version, ExportFormat: api.ExportFormat,
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program and of its formats", Args: exactArgs(0),
		Example: "  stave version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			g := newGrid()
			g.add("version", v.Version)
			g.add("go", v.Go+" "+v.Platform)
			g.add("feature level", v.FeatureLevel)
			g.add("formats", fmt.Sprintf("snapshot %d, export %d", v.SnapshotFormat, v.ExportFormat))
			return a.show(v, g)
		},
	}
}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a completion script for a shell", Args: exactArgs(1),
		Example:   "  source <(stave completion bash)",
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usagef("shell %q: want bash, zsh, fish or powershell", args[0])
		},
	}
}
