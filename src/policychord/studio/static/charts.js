// Lines over time, by the plotting library that comes with a Python package; loaded when the first chart is wanted.
import { tokens } from "./canvas.js";

let loading = null;

function library() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/static/plotly.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("the chart library could not be loaded"));
    document.head.append(script);
  });
  return loading;
}

// series: [{name, x, y, colour, dash}]; axes: {x, y, range}
export async function lines(element, series, axes) {
  const plotly = await library();
  if (!element.isConnected) return;
  const colours = tokens();
  const axis = (title, range) => ({
    title: { text: title, standoff: 8 }, range, autorange: range ? undefined : true, gridcolor: colours.faint,
    linecolor: colours.line, zeroline: false, tickfont: { color: colours.soft }, automargin: true, fixedrange: true,
  });
  const traces = series.map((one) => ({
    type: "scatter", mode: "lines", name: one.name, x: one.x, y: one.y, hoverinfo: "x+y+name",
    line: { color: one.colour, width: 2, dash: one.dash || "solid" },
  }));
  const layout = {
    margin: { l: 52, r: 16, t: 28, b: 40 }, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
    font: { family: colours.sans, size: 12, color: colours.soft }, hovermode: "x unified",
    hoverlabel: { bgcolor: colours.paper, bordercolor: colours.line },
    xaxis: axis(axes.x), yaxis: axis(axes.y, axes.range), showlegend: true,
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" },
  };
  await plotly.react(element, traces, layout, { displayModeBar: false, responsive: true });
}

export async function clear(element) {
  if (loading) (await loading).purge(element);
}
