/* Detections matched with truths as COCO does it: greedily, from the highest score, in each group of one image and class.
 *
 * Flags of a detection: 1 matched, 2 matched with a truth that is ignored, 0 neither. */
#include <stdint.h>
#include <string.h>

static double box_intersection(const double *d, const double *g)
{
    double right = d[0] + d[2] < g[0] + g[2] ? d[0] + d[2] : g[0] + g[2];
    double bottom = d[1] + d[3] < g[1] + g[3] ? d[1] + d[3] : g[1] + g[3];
    double width = right - (d[0] > g[0] ? d[0] : g[0]), height = bottom - (d[1] > g[1] ? d[1] : g[1]);
    return width <= 0 || height <= 0 ? 0 : width * height;
}

/* The best of the free truths whose ignored flag is `wanted`, at least as good as `least`; of equals the last; or -1. */
static int64_t best_of(const double *ious, const uint8_t *taken, const uint8_t *crowd, const uint8_t *ignored,
                       int64_t truths, int wanted, double least)
{
    int64_t best = -1;
    for (int64_t g = 0; g < truths; g++) {
        if (ignored[g] != wanted || (taken[g] && !crowd[g]) || ious[g] < least)
            continue;
        least = ious[g];
        best = g;
    }
    return best;
}

/* boxes: left, top, width, height, of detections and truths; or, where `intersections` is not null, none: the pixels that
 * masks d and g share are then at rows[d] + columns[g] in it. areas: of both. starts: (groups + 1). ignored: (areas, truths).
 * flags: (areas, thresholds, detections), zeroed. ious: room for the largest group. taken: for its truths. */
void assay_match(uint8_t *flags, const double *boxes, const double *truth_boxes, const double *areas,
                 const double *truth_areas, const int64_t *intersections, const int64_t *rows_of, const int64_t *columns_of,
                 const int64_t *detection_starts, const int64_t *truth_starts, int64_t groups, const uint8_t *crowd,
                 const uint8_t *ignored, int64_t ranges, const double *thresholds, int64_t count, double *ious,
                 uint8_t *taken)
{
    int64_t all_detections = detection_starts[groups], all_truths = truth_starts[groups];
    for (int64_t k = 0; k < groups; k++) {
        int64_t d0 = detection_starts[k], g0 = truth_starts[k];
        int64_t rows = detection_starts[k + 1] - d0, columns = truth_starts[k + 1] - g0;
        if (!rows || !columns)
            continue;
        double highest = 0;
        for (int64_t d = 0; d < rows; d++)
            for (int64_t g = 0; g < columns; g++) {
                double both = intersections
                                  ? (double)intersections[rows_of[d0 + d] + columns_of[g0 + g]]
                                  : box_intersection(boxes + 4 * (d0 + d), truth_boxes + 4 * (g0 + g));
                double whole = crowd[g0 + g] ? areas[d0 + d] : areas[d0 + d] + truth_areas[g0 + g] - both;
                double iou = both > 0 ? both / whole : 0;
                ious[d * columns + g] = iou;
                highest = iou > highest ? iou : highest;
            }
        for (int64_t a = 0; a < ranges; a++)
            for (int64_t t = 0; t < count; t++) {
                const uint8_t *ignore = ignored + a * all_truths + g0;
                uint8_t *out = flags + (a * count + t) * all_detections + d0;
                double least = thresholds[t];
                if (highest < least)
                    continue;
                memset(taken, 0, (size_t)columns);
                for (int64_t d = 0; d < rows; d++) {
                    const double *row = ious + d * columns;
                    int64_t best = best_of(row, taken, crowd + g0, ignore, columns, 0, least);
                    if (best < 0)
                        best = best_of(row, taken, crowd + g0, ignore, columns, 1, least);
                    if (best < 0)
                        continue;
                    taken[best] = 1;
                    out[d] = (uint8_t)(1 + ignore[best]);
                }
            }
    }
}

/* The highest precision at each recall or above, of detections sorted by class and falling score.
 *
 * values: (areas, thresholds, classes, count), NaN. hits, misses: (areas, thresholds, detections). last: whether a detection
 * is the last of those with its score. starts: (classes + 1). positives: (areas, classes). recalls: increasing. room: two
 * numbers for each detection of the largest class. */
void assay_precision(double *values, const uint8_t *hits, const uint8_t *misses, const uint8_t *last, const int64_t *starts,
                     const int64_t *positives, int64_t areas, int64_t thresholds, int64_t classes, const double *recalls,
                     int64_t count, double *room)
{
    int64_t detections = starts[classes];
    for (int64_t row = 0; row < areas * thresholds; row++)
        for (int64_t k = 0; k < classes; k++) {
            int64_t all = positives[row / thresholds * classes + k], right = 0, wrong = 0, steps = 0;
            if (!all)
                continue;
            for (int64_t d = starts[k]; d < starts[k + 1]; d++) {
                right += hits[row * detections + d];
                wrong += misses[row * detections + d];
                if (!last[d])
                    continue;
                room[2 * steps] = right + wrong ? (double)right / (double)(right + wrong) : 0;
                room[2 * steps++ + 1] = (double)right / (double)all;
            }
            for (int64_t i = steps - 2; i >= 0; i--)
                if (room[2 * i] < room[2 * i + 2])
                    room[2 * i] = room[2 * i + 2];
            double *out = values + (row * classes + k) * count;
            for (int64_t r = 0, i = 0; r < count; r++) {
                while (i < steps && room[2 * i + 1] < recalls[r])
                    i++;
                out[r] = i < steps ? room[2 * i] : 0;
            }
        }
}
