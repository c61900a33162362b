//! The report as a picture: an SVG file that any browser shows.

use std::fmt::Write as _;

use super::report::{ArmReport, Report, number};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 150.0;
const BAR: f64 = 18.0;
const STEP: f64 = 26.0;

/// Stacked bars of one panel: what each part is, and its colour.
type Part = (&'static str, &'static str, fn(&ArmReport) -> f64);

struct Panel {
    title: &'static str,
    parts: &'static [Part],
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "Calls of the agent and turns spared, per session",
        parts: &[
            ("calls", "#4c72b0", |arm| arm.calls.mean),
            ("spared", "#a9c4e6", |arm| arm.spared.mean),
        ],
    },
    Panel {
        title: "Lookups, all sessions (shadow: that would have been made)",
        parts: &[
            ("used", "#55a868", |arm| number(arm.total.used)),
            ("detours", "#c9ccd1", |arm| number(arm.total.detours)),
        ],
    },
    Panel {
        title: "Forbidden writes and refusals, all sessions",
        parts: &[
            ("carried out", "#c44e52", |arm| number(arm.total.harm)),
            ("refused rightly", "#55a868", |arm| {
                number(arm.total.refused_right)
            }),
            ("refused wrongly", "#dd8452", |arm| {
                number(arm.total.refused_wrong)
            }),
        ],
    },
    Panel {
        title: "Milliseconds that the agent waits for a call, mean",
        parts: &[("ms", "#8172b3", |arm| arm.wait_ms)],
    },
];

impl Report {
    /// The report as an SVG picture.
    pub fn svg(&self) -> String {
        let panel_height = 52.0 + STEP * number(self.arms.len());
        let height = 20.0 + panel_height * number(PANELS.len());
        let mut svg = String::new();
        let mut top = 30.0;
        for panel in &PANELS {
            draw(&mut svg, panel, &self.arms, top);
            top += panel_height;
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{svg}</svg>\n"
        )
    }
}

fn draw(svg: &mut String, panel: &Panel, arms: &[ArmReport], top: f64) {
    let sum = |arm: &ArmReport| panel.parts.iter().map(|(.., of)| of(arm)).sum::<f64>();
    let most = arms.iter().map(sum).fold(0.0, f64::max);
    let scale = if most > 0.0 {
        (WIDTH - LEFT - 170.0) / most
    } else {
        0.0
    };
    let mut put = |text: std::fmt::Arguments<'_>| {
        svg.write_fmt(text)
            .expect("a string takes whatever it is given");
    };
    put(format_args!(
        "<text x=\"20\" y=\"{top}\" font-weight=\"bold\">{}</text>\n",
        panel.title
    ));
    for (row, arm) in arms.iter().enumerate() {
        let y = top + 12.0 + STEP * number(row);
        let middle = y + BAR - 5.0;
        put(format_args!(
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 10.0,
            arm.arm
        ));
        let mut x = LEFT;
        let mut told = Vec::new();
        for (name, colour, of) in panel.parts {
            let value = of(arm);
            let width = value * scale;
            put(format_args!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\">\
                 <title>{name} {value:.2}</title></rect>\n"
            ));
            x += width;
            told.push(if value.fract().abs() < 1e-9 {
                format!("{value:.0}")
            } else {
                format!("{value:.1}")
            });
        }
        put(format_args!(
            "<text x=\"{:.1}\" y=\"{middle}\">{}</text>\n",
            x + 6.0,
            told.join(" + ")
        ));
    }
    if panel.parts.len() > 1 {
        let mut x = 480.0;
        for (name, colour, _) in panel.parts {
            put(format_args!(
                "<rect x=\"{x}\" y=\"{}\" width=\"11\" height=\"11\" fill=\"{colour}\"/>\n",
                top - 10.0
            ));
            put(format_args!(
                "<text x=\"{}\" y=\"{top}\">{name}</text>\n",
                x + 16.0
            ));
            x += 125.0;
        }
    }
}
