package daemon

import (
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// newLog returns a logger to f and the level it can be turned to. Format is
// "console", "json", or "auto": readable on a terminal, JSON otherwise.
func newLog(f *os.File, level, format string) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, at, err
	}
	var enc zapcore.Encoder
	cfg := zap.NewProductionEncoderConfig()
	if format == "console" || format == "auto" && term.IsTerminal(int(f.Fd())) {
		cfg.EncodeLevel = zapcore.CapitalColorLevelEncoder
		if !term.IsTerminal(int(f.Fd())) || os.Getenv("NO_COLOR") != "" {
			cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		}
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		cfg.EncodeDuration = zapcore.StringDurationEncoder
		cfg.ConsoleSeparator = "  "
		enc = zapcore.NewConsoleEncoder(cfg)
	} else {
		cfg.TimeKey = "time"
		cfg.EncodeTime = func(t time.Time, e zapcore.PrimitiveArrayEncoder) {
			e.AppendString(t.UTC().Format("2006-01-02T15:04:05.000000Z"))
		}
		cfg.EncodeDuration = zapcore.StringDurationEncoder
		enc = zapcore.NewJSONEncoder(cfg)
	}
	core := zapcore.NewCore(enc, zapcore.Lock(f), at)
	return zap.New(core, zap.AddStacktrace(zapcore.DPanicLevel)), at, nil
}
